"""How close does collecting answers come to the rate that its concurrency allows, if a reply takes 50 ms?

    python benchmarks/collecting_speed.py [--questions 1600] [--concurrency 8] [--latency 0.05]

The server runs in another process on this machine. All time counts, also that for checking and storing answers. The
ideal is concurrency / latency. For comparison, some of the questions are also asked one after the other.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

ALONE = 40  # questions asked one after the other


def serve(latency: float, ports: Any) -> None:
    reply = json.dumps(
        {
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "B"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 50, "completion_tokens": 1},
        }
    ).encode()
    answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (len(reply), reply)

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                await reader.readexactly(length)
                await asyncio.sleep(latency)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        ports.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--questions", type=int, default=1600)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds")
    options = parser.parse_args()
    here, there = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(options.latency, there), daemon=True)
    server.start()
    with tempfile.TemporaryDirectory(prefix="hunch-collecting-") as folder:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="survey.settings",
            HUNCH_VAR=folder,
            DATABASE_URL=f"sqlite:///{folder}/collecting.sqlite3",
            HUNCH_LLM_URL=f"http://127.0.0.1:{here.recv()}/v1",
            HUNCH_LLM_KEY="",
            HUNCH_LOG_LEVEL="ERROR",
        )
        try:
            rate, alone, cpu = measure(Path(folder), options)
        finally:
            server.terminate()
    ideal = options.concurrency / options.latency
    print(f"{rate:.0f} answers a second, {100 * rate / ideal:.1f} % of the ideal {ideal:.0f}; one by one: {alone:.1f}")
    print(f"{1000 * cpu:.2f} ms of CPU for each answer; the ideal rate allows {1000 / ideal:.2f} ms")
    print(
        json.dumps(
            {
                "answers_per_second": rate,
                "share_of_ideal": rate / ideal,
                "one_by_one_per_second": alone,
                "cpu_seconds_per_answer": cpu,
            }
        )
    )
    return 0


def measure(folder: Path, options: argparse.Namespace) -> tuple[float, float, float]:
    """Answers per second with the concurrency, and one after the other; CPU seconds of this process per answer."""
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    from survey.services.banks import collecting
    from survey.services.banks.importing import import_questions

    rows = (
        f"q:{number},made up,Which one is number {number}? (A) this (B) that,B" for number in range(options.questions)
    )
    path = folder / "bank.csv"
    path.write_text("id,source,question,answer\n" + "\n".join(rows) + "\n")
    bank = import_questions(path, "made-up")
    results = []
    for name, limit, concurrency in (("alone", ALONE, 1), ("together", None, options.concurrency)):
        # With another reply length the request is a new one, so that no answer comes from the store.
        made = collecting.create_collection(
            bank=bank, model="fake", name=name, limit=limit, concurrency=concurrency, max_tokens=5 + concurrency
        )
        started, cpu = time.perf_counter(), time.process_time()
        ended = collecting.run_collection(made.pk)
        seconds = time.perf_counter() - started
        if ended is None or ended.answered != made.wanted:
            raise SystemExit(f"the collection did not end well: {ended and ended.error}")
        results.append(made.wanted / seconds)
    return results[1], results[0], (time.process_time() - cpu) / made.wanted


if __name__ == "__main__":
    sys.exit(main())
