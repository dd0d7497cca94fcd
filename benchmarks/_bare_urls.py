"""The pages of _bare_site: a form, its answer in a locked transaction, and the form again."""

import os

from django.db import connection, transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.middleware.csrf import get_token
from django.urls import include, path

# As large as the page of an item.
FILLER = "<p>" + "x" * int(os.environ.get("BARE_PAGE", "6000")) + "</p>"


def form(request: HttpRequest, person: int) -> HttpResponse:
    if request.method == "POST":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT step FROM bare_person WHERE id = %s FOR UPDATE", [person])
            cursor.execute("INSERT INTO bare_answer (person, value) VALUES (%s, %s)", [person, request.POST["value"]])
            cursor.execute("UPDATE bare_person SET step = step + 1 WHERE id = %s", [person])
        return HttpResponseRedirect(request.path, status=303)
    with connection.cursor() as cursor:
        cursor.execute("SELECT step FROM bare_person WHERE id = %s", [person])
        (step,) = cursor.fetchone()
    token = f'<input type="hidden" name="csrfmiddlewaretoken" value="{get_token(request)}">'
    return HttpResponse(f'<main data-kind="form"><form method="post">{token}<h1>{step}</h1>{FILLER}</form></main>')


# The web process looks up where the admin is.
urlpatterns = [path("<int:person>", form), path("", include("survey.urls"))]
