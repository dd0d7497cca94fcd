"""Does the demo find its lift? The demo's study on many seeds, without HTTP: the same plan, people, predictor and test.

    python benchmarks/demo_power.py [--seeds 20] [--jobs 2] [--null]

Each seed runs in a separate process, with one thread, a new SQLite database and a new folder of files. The services
create, plan and open the study of studies/demo.toml. Simulated people answer the instrument's screens through the
answering service. Training, scoring and planning are the same steps that the workers run.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def run_one(seed: int, *, null: bool) -> dict[str, Any]:
    """The demo of one seed, in this process, whose environment names a new folder."""
    os.environ["DJANGO_SETTINGS_MODULE"] = "survey.settings"
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0, interactive=False)
    from survey.services.banks.importing import load_starter_bank
    from survey.services.stages import jobs, lifecycle
    from survey.simulator.demonstration import create_demo_study, stage_lines, summary, verdict_on

    started = time.monotonic()
    load_starter_bank()
    study = create_demo_study(seed=seed)
    for stage in study.stages.select_related("study__bank").order_by("index"):
        lifecycle.open_stage(stage)
        for number in range(stage.config.sittings):
            take_part(study, number, null=null)
        jobs.run_inline(lifecycle.close_stage(stage))
    verdict = verdict_on(study, null=null)
    seconds = time.monotonic() - started
    return {
        "seed": seed,
        "passed": verdict.passed,
        **summary(seconds=seconds, lines=stage_lines(study), verdict=verdict),
    }


def take_part(study: Any, number: int, *, null: bool) -> None:
    """One person's whole sitting, through the services that the pages call."""
    from survey.contracts import instruments
    from survey.services.sittings import answering, enrolment, queries
    from survey.services.sittings.flow import current_step
    from survey.simulator.crowd import seed_of
    from survey.simulator.routes import readable_parts

    seed = seed_of(study.seed, "every", number)
    person = instruments.of_study(study).simulated_person(seed=seed, null=null)
    sitting = enrolment.begin_sitting(study=study, ids=enrolment.new_open_person(), simulated=True)
    sitting = queries.sitting_for(sitting.token)
    right = {check.name: check.options[0] for block in study.config.blocks for check in block.checks}
    step = current_step(sitting)
    while step.kind != "end":
        data: dict[str, Any] = {}
        if step.kind == "checks":
            for check in step.checks:
                texts = [text for _index, text in check.options]
                data[check.name] = str(1 + texts.index(right[check.name]))
        elif step.screen is not None:
            data = person.answer(screen=step.screen.name, parts=readable_parts(step.screen.parts))
        step = answering.advance(sitting=sitting, step=step.number, data=data)


def run_apart(seed: int, *, null: bool) -> dict[str, Any]:
    """`run_one` in a separate process."""
    with tempfile.TemporaryDirectory(prefix="hunch-power-") as folder:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(seed), *(["--null"] if null else [])],
            env={
                **os.environ,
                **threads,
                "HUNCH_VAR": folder,
                "DATABASE_URL": f"sqlite:///{folder}/power.sqlite3",
                "HUNCH_LOG_LEVEL": "ERROR",
                "TOKENIZERS_PARALLELISM": "false",
            },
            stdout=subprocess.PIPE,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"seed {seed} failed with status {done.returncode}; see above")
    report: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=2, help="seeds at a time")
    parser.add_argument("--null", action="store_true", help="changes independent of the pair: no lift may be seen")
    parser.add_argument("--one", type=int, metavar="SEED", help="only this seed, in this process")
    options = parser.parse_args()
    if options.one is not None:
        print(json.dumps(run_one(options.one, null=options.null)))
        return 0
    results = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda seed: run_apart(seed, null=options.null), range(1, options.seeds + 1)):
            shares = " -> ".join(f"{stage['share']:.3f}" for stage in result["stages"])
            aucs = ", ".join(f"{stage['auc']:.3f}" for stage in result["stages"] if stage["auc"] is not None)
            print(
                f"seed {result['seed']:2}: {'passed' if result['passed'] else 'FAILED'}  changed {shares}  "
                f"AUC before {aucs}  p = {result['p']:.2g}  {result['seconds']:.0f} s",
                flush=True,
            )
            results.append(result)
    passed = sum(result["passed"] for result in results)
    print(
        json.dumps(
            {
                "passed": passed,
                "seeds": len(results),
                "null": options.null,
                "largest_p": max(result["p"] for result in results),
                "lifts": [result["lift"] for result in results],
            }
        )
    )
    return 0 if passed == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
