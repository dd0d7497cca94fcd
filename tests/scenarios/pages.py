"""What the scenarios read of pages."""

from typing import Any

from django.test import Client


def read(client: Client, address: str) -> str:
    response = client.get(address)
    assert response.status_code == 200, address
    return str(response.content.decode())


def send(client: Client, address: str, **data: Any) -> str:
    response = client.post(address, data, follow=True)
    assert response.status_code == 200, address
    return str(response.content.decode())


def download(client: Client, address: str) -> str:
    response = client.post(address)
    assert response.status_code == 200, address
    content = b"".join(response.streaming_content) if response.streaming else response.content  # type: ignore[attr-defined]
    return content.decode()


def study_page(study: Any) -> str:
    return f"/admin/survey/study/{study.pk}/change/"
