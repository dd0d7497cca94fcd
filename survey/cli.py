"""The command `hunch`, which is what `manage.py` calls too: our own commands first, in plain words.

The list does not load the settings: they would make a folder and keys, which people who ask for help do not want.
A command that has no sentence here is still listed, with the first line of its file.
"""

import ast
import os
import sys
from pathlib import Path

from survey.storage.paths import BASE_DIR, STUDIES_DIR, installed_version

COMMANDS = "**/management/commands/[a-z]*.py"
GROUPS: dict[str, dict[str, str]] = {
    "To begin": {
        "demo": "Run a whole study with simulated respondents, then serve it until Ctrl-C.",
        "up": "Start the web pages and the workers, until Ctrl-C.",
        "doctor": "Say whether every part works, and what to do where one does not.",
    },
    "Questions": {
        "store_logo": "Store a university's logo for respondents' pages.",
        "import_questions": "Load questions from a file as the next version of a bank.",
        "flag_questions": "Keep questions out of everything that is drawn from now on.",
        "embed_questions": "Store by what an aid next to the target finds similar questions.",
    },
    "A study": {
        "check_study": "Say what is wrong with a study file, and what the study will cost.",
        "plan_budget": "Simulate a study: what it would find, how sure it would be, what it costs.",
        "create_study": "Make a study from its file.",
        "members": "Say who may do what in a study, and change it.",
        "duplicate_study": "Write the file of a study like another one.",
        "amend_study": "Replace a study's file with a changed one, and give the reason.",
        "test_copy": "Make, renew or delete a study's test copy, or the address of a preview.",
        "dry_run": "Fill every figure and table of a study's test copy with simulated people.",
        "unblind": "Show the conditions of a blind study from now on.",
        "archive_study": "Take a study out of the lists; nothing of it is deleted.",
        "screens": "Write every screen of a study to files, for instance for an ethics board.",
    },
    "Its stages": {
        "open_stage": "Let respondents in.",
        "pause_stage": "Let nobody in for now.",
        "close_stage": "End a stage; the workers train the predictors and plan the next stage.",
        "plan_stage": "Draw the plan of a stage yourself.",
        "study_status": "Show stages, answers and the work between them.",
        "receivers": "Say where a study's alerts are sent, and change it.",
        "retry_steps": "Do failed work between two stages again.",
        "verify_stage": "Draw a stage's plan again and compare it with the stored one.",
        "pilot_report": "Show what a study's pilot found.",
        "simulate": "Send simulated respondents through the pages.",
    },
    "Its people": {
        "posting": "Post the study at Prolific: draft, publish, pause, add places.",
        "invite": "Invite people to a later wave of a study.",
        "links": "Make links for a lab, one person each.",
        "reconcile": "Compare who took part here and at the panel, and what is owed.",
        "pay_bonuses": "Show and pay the bonuses that are owed.",
        "withdraw": "Delete a person's answers when they ask for it.",
        "demographics": "Write what the panel knows of the people, by pseudonym.",
        "purge_identities": "Delete the panel's ids of people who have been paid.",
    },
    "What came out": {
        "report": "List a study's reports, or write one.",
        "methods": "Write the methods section: sampling, people, estimates; a preregistration; an ethics page.",
        "export": "Write the answers and a codebook to files.",
        "paper": "Make the paper's tables and figures of a study, or from files.",
        "release": "Write a belief study in the columns of the paper's released data.",
        "reason_codes": "Compare the codes that several people gave to a study's reasons.",
        "jobs": "List what workers were asked for, such as exports; ask, cancel, fetch.",
        "estimate": "Estimate, with intervals, what people would answer over the whole bank.",
        "compare_policies": "Estimate what another design or predictor would have found.",
        "leaderboard": "Compare a study's predictors on answers that they had not seen.",
        "evaluate_predictors": "Train and compare predictors, on files or on a study.",
    },
    "Language models": {
        "collect_answers": "Ask a language model the questions of a bank.",
        "judge_again": "Judge stored replies of language models by the present rules.",
        "import_answers": "Load answers of language models from a file.",
        "import_replies": "Load whole replies of language models from a file.",
        "perplexity": "Say how well language models predict texts.",
        "train_ngram": "Train an n-gram model from texts.",
        "train_lm": "Train an LSTM or a transformer of words from texts.",
        "composition": "Say how beliefs after several evidence questions add up.",
        "train_tokenizer": "Train a byte-pair tokenizer from texts.",
        "prepare_passages": "Cut passages into tokens, and let language models read them.",
        "alignment": "Say whether language models perform as people expect.",
        "preferences": "Rank language models by which reply people, and judges, prefer.",
        "judge_replies": "Ask a language model which reply is better.",
        "import_judgements": "Load judges' verdicts on the replies of a study from a file.",
        "next_token": "Compare how often people and language models guess the next token.",
        "cloze": "Compare how people and language models expect the next word.",
        "token_comparison": "Estimate people's loss at predicting the next token.",
        "reading": "Say how long people look at words, and what surprisal adds to predicting it.",
        "compare_models": "Say what goes with what over the models of a finished table.",
        "agreement": "Say how far people and models agree on the same items.",
        "calibration": "Compare the chances that people, models, judges and predictors gave.",
        "gaps": "Say on which items people and models part.",
        "human_calibration": "Say whether people foresee what people and models get right.",
    },
    "The data": {
        "backup": "Write the database, its files and the keys to one encrypted file.",
        "restore": "Fill an empty database from a backup.",
        "check_files": "Say whether the files of plans and predictors are all there and unchanged.",
        "verify_audit": "Say whether the audit was changed.",
        "keys": "Say whether the keys are those that the database was used with.",
    },
    "Instruments and panels of your own": {
        "new_instrument": "Write the package of a new instrument, to be filled in.",
        "new_panel": "Write the package of a new panel, to be filled in.",
    },
    "Connections": {
        "create_token": "Make a token for the REST API.",
        "revoke_token": "End a token for the REST API.",
        "first_account": "Print the address that makes the first account.",
        "unlock": "Let a researcher log in again who is locked out or has lost the device with codes.",
        "subscribe_webhooks": "Have Prolific report changes at once.",
        "fake_prolific": "Run a simulated Prolific on this machine, to try everything out.",
    },
}
OTHERS = "Others"


def main() -> None:
    """Run one command, with the arguments of this process."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "survey.settings")
    arguments = sys.argv[1:]
    if arguments in ([], ["help"], ["--help"], ["-h"]):
        sys.stdout.write(help_text(Path(sys.argv[0]).name))
        return
    if arguments == ["--version"]:
        sys.stdout.write(f"Hunch {installed_version()}\n")
        return
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)


def help_text(program: str) -> str:
    """What `hunch --help` prints."""
    listed = {name for commands in GROUPS.values() for name in commands}
    others = {name: summary for name, summary in summaries().items() if name not in listed}
    width = max(map(len, [*listed, *others]))
    lines = [
        "Hunch measures what people expect of language models.",
        "",
        f"usage: {program} COMMAND [options]",
        f"       {program} COMMAND --help    what a command takes",
    ]
    for heading, commands in {**GROUPS, OTHERS: others}.items():
        if commands:
            lines += ["", heading, *(f"  {name:{width}}  {summary}" for name, summary in commands.items())]
    lines += [
        "",
        f"Of Django's own commands you need `{program} createsuperuser` (a login for the admin) and, after an update,",
        f"`{program} migrate`. `{program} help --commands` names the others.",
        "",
        f"Study files to start from: {STUDIES_DIR}",
    ]
    return "\n".join(lines) + "\n"


def summaries() -> dict[str, str]:
    """Each of our commands with the summary in its module's first line, after the colon."""
    summaries = {}
    for path in sorted((BASE_DIR / "survey").glob(COMMANDS)):
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        summaries[path.stem] = text.split("\n\n")[0].replace("\n", " ").partition("`: ")[2]
    return summaries
