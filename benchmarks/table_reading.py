"""What does it cost to read the tables that people bring? 100,000 rows of each kind, without a database.

    python benchmarks/table_reading.py [--rows 100000] [KIND ...]

Each kind is read in a process of its own. Printed are its seconds of the processor, the least of three, and how many
MiB the process grew at most while it read the file the first time.
"""

import argparse
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
KINDS = ("norms", "times", "comparisons", "answers", "pairs", "guesses", "frequencies", "tokens", "bank")


def rows_of(kind: str, count: int) -> tuple[str, list[str]]:
    chance = random.Random(1)
    numbers = range(count)
    if kind == "norms":
        return "sentence,position,word,n,k,rt", [
            f"s{i // 10},{i % 10},w{i},40,{i % 40},{300 + i % 90}.5" for i in numbers
        ]
    if kind == "times":
        header = "person,passage,position,word,time,log_frequency,right"
        return header, [f"p{i // 500},a{i % 500 // 50},{i % 50},w{i % 500},{300 + i % 90}.5,-3.2,1" for i in numbers]
    if kind == "comparisons":
        header = "prompt,model_a,model_b,category,annotator,outcome,probability"
        return header, [f"q{i // 6},m{i % 3},m{3 + i % 2},c,p{i % 90},{'ab'[i % 2]},0.25" for i in numbers]
    if kind == "answers":
        header = "person,context,multiplicity,percent_true,log_g_true,log_g_other"
        return header, [f"p{i % 50},c{i // 50},1,{1 + i % 98},-0.5,-{1 + i % 7}.25" for i in numbers]
    if kind == "pairs":
        header = "q1,q2,source1,source2,pred_if_correct,pred_if_incorrect"
        return header, [f"What is {i}?,And {chance.random()}?,s,t,0.25,0.{i % 100:02}" for i in numbers]
    if kind == "guesses":
        return "person,passage,position,guess,truth,asked", [
            f"p{i // 99},a,{i % 99},x,{'xy'[i % 2]},1" for i in numbers
        ]
    if kind == "frequencies":
        return "word,count", [f"w{i},{i + 1}" for i in numbers]
    if kind == "tokens":
        return "text_id,start,end,logprob", [f"t{i // 100},{i % 100},{i % 100 + 1},-1.5" for i in numbers]
    return "id,source,question,answer", [f"q{i},task {i % 50},What is {chance.random()}?,{i % 10}" for i in numbers]


def reader_of(kind: str, count: int) -> Callable[[Path], Any]:
    import django

    django.setup()
    from predictors.readings import Text
    from survey.instruments.belief_update.reports.alignment import files as alignment_files
    from survey.instruments.cloze.reports import files
    from survey.instruments.next_token.reports import own_guesses
    from survey.instruments.preference.reports import reading_files
    from survey.instruments.self_paced_reading.reports import own_times
    from survey.instruments.token_comparison.reports import own_answers
    from survey.services.banks import frequencies, text_files, uploads

    texts = [Text(f"t{number}", "x" * 100) for number in range((count + 99) // 100)]
    readers: dict[str, Callable[[Path], Any]] = {
        "norms": lambda path: files.read_norms(path, lenient=False),
        "times": own_times._read_times,
        "comparisons": reading_files.read_material,
        "answers": own_answers.read_answers,
        "pairs": alignment_files.read_sample,
        "guesses": own_guesses.read_guesses,
        "frequencies": frequencies.read_frequencies,
        "tokens": lambda path: text_files.token_file(path, texts, tokenizer="t"),
        "bank": lambda path: uploads.propose(path.read_bytes(), path.name),
    }
    return readers[kind]


def measure(kind: str, count: int) -> None:
    with tempfile.TemporaryDirectory(prefix="hunch-tables-") as folder:
        path = Path(folder) / "table.csv"
        header, rows = rows_of(kind, count)
        path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        del rows
        read, before = reader_of(kind, count), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        seconds = []
        for number in range(3):
            begun = time.process_time()
            read(path)
            seconds.append(time.process_time() - begun)
            if not number:
                grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{kind:12} {min(seconds):6.2f} s {grown:6.0f} MiB", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=", ".join(KINDS))
    options = parser.parse_args()
    kinds = options.kinds or KINDS
    with tempfile.TemporaryDirectory(prefix="hunch-tables-") as folder:
        os.environ |= {"DJANGO_SETTINGS_MODULE": "survey.settings", "HUNCH_VAR": folder, "HUNCH_LOG_LEVEL": "ERROR"}
        os.environ.setdefault("DATABASE_URL", f"sqlite:///{folder}/unused.sqlite3")
        if len(kinds) == 1:
            measure(kinds[0], options.rows)
            return 0
        command = [sys.executable, __file__, "--rows", str(options.rows)]
        return max(subprocess.call([*command, kind]) for kind in kinds)


if __name__ == "__main__":
    sys.exit(main())
