"""Examples of what the respondents' API takes and gives, all from one study. Imports nothing from survey.

A test takes part in that study: every step has one of these shapes, and every answer here is accepted at its step.
"""

from typing import Any

Json = dict[str, Any]
QUESTION, OTHER = "<b>What is 7 times 8?</b>", "<b>Which planet is nearest to the sun?</b><br>A. Venus<br>B. Mercury"
LAST = 30  # The number of the last step.
EXAMPLE, BESIDE = "Which is heavier, a litre of water or a litre of oil?", "How many minutes are there in a day?"


def _field(name: str, kind: str, label: str, **more: Any) -> Json:
    nothing: Json = {"minimum": None, "maximum": None, "max_length": None, "initial": None}
    lists: Json = {"options": [], "labels": [], "exclusive": [], "hint": ""}
    return {"name": name, "type": kind, "label": label, "required": True, **nothing, **lists, **more}


def _percent(label: str, name: str = "value", **more: Any) -> Json:
    return _field(name, "integer", label, minimum=0, maximum=100, **more)


def _step(number: int, kind: str, title: str, text: str = "", **more: Any) -> Json:
    percent = 100 if kind == "end" else round(100 * (number - 1) / LAST)
    done = {"percent": percent, "question": more.pop("question", 0), "questions": more.pop("questions", 0)}
    item: Json = {"position": 0, "total": 0, "progress": done, "screen": None}
    values = {**item, "checks": [], "attempt": 0, "hints": [], "feedback": [], "fields": [], **more}
    return {"number": number, "kind": kind, "title": title, "text": text, **values, **_end(values)}


def _end(step: Json) -> Json:
    return {name: step.get(name, "") for name in ("outcome", "code", "completion_url")}


def _part(value: str | int) -> Json:
    kind = "number" if isinstance(value, int) else "question" if value in (QUESTION, OTHER, EXAMPLE, BESIDE) else "text"
    return {"kind": kind, "value": value}


def _screen(name: str, title: str, parts: Json, words: Json, *fields: Json) -> Json:
    shown_parts = {part: _part(value) for part, value in parts.items()}
    return {"name": name, "title": title, "parts": shown_parts, "words": words, "fields": list(fields)}


_SETTING = "answerer=model; models=different; evidence=hypothetical; language=en; edition=1"
_FIRST = "How likely is it that the model answers this question correctly?"
_NOW = "How likely is it now that the model answers the first question correctly?"
_WHY, _OWN = "Why is this your answer now?", "How would you answer this question yourself?"
_EVIDENCE = {
    "evidence": "Suppose that the same model was asked another question:",
    "outcome": "Suppose that the model answered this question correctly.",
}


def _prior(target: str) -> Json:
    return _screen(
        "prior",
        _FIRST,
        {"target": target, "variant": _SETTING},
        {
            "each": "Each time, we ask about a different model. What you see of one says nothing about the next.",
            "intro": "A large language model is asked this question:",
        },
        _percent("Your answer in percent, from 0 to 100"),
    )


def _shown(target: str, evidence: str, mode: str = "", **numbers: int) -> Json:
    setting = f"answer_mode={mode}; {_SETTING}" if mode else _SETTING
    return {"target": target, "variant": setting, **numbers, "evidence": evidence, "outcome": "correct"}


def _posterior(mode: str, *fields: Json, target: str = QUESTION, evidence: str = OTHER, ask: str = "") -> Json:
    again = {"again": "This was the first question:", "earlier": "Your answer before:", **({"ask": ask} if ask else {})}
    return _screen("posterior", _NOW, _shown(target, evidence, mode, prior=62), {**_EVIDENCE, **again}, *fields)


def _explanation(target: str, evidence: str) -> Json:
    return _screen(
        "explanation",
        _WHY,
        _shown(target, evidence, prior=62, posterior=70),
        {
            **_EVIDENCE,
            "again": "This was the first question:",
            "earlier": "First you said:",
            "now": "Then you said:",
            "ask": "A sentence or two are enough.",
        },
        _field("explanation", "text", "Your reasons, in your own words", max_length=1000),
    )


def _own_answer(target: str) -> Json:
    return _screen(
        "own_answer",
        _OWN,
        {"target": target, "variant": _SETTING},
        {"intro": "Please do not look it up."},
        _field("answer", "text", "Your own answer", max_length=200),
        _percent("How sure are you that your own answer is right? In percent, from 0 to 100", "confidence"),
    )


_DIRECTION = (
    _field(
        "direction",
        "choice",
        "Compared with before, your answer now is:",
        options=["lower", "same", "higher"],
        labels=["Lower than 62 %", "The same, 62 %", "Higher than 62 %"],
    ),
    _percent("If it changed: your new number in percent, from 0 to 100", required=False),
)
_AGAIN = "Your answer now in percent, from 0 to 100"
_KEEP = _field(
    "keep",
    "choice",
    "My answer stays at 62 %",
    required=False,
    options=["yes"],
    labels=["My answer stays at 62 %"],
)
_WHAT = {
    "name": "what",
    "question": "Whose answers do you judge?",
    "options": [{"value": "1", "text": "People."}, {"value": "2", "text": "Language models."}],
}
_READ = {
    "name": "read",
    "question": "Please choose “I read this.” here.",
    "options": [{"value": "1", "text": "I read this."}, {"value": "2", "text": "I did not."}],
}
_FIRST_ITEM: Json = {"position": 1, "total": 4, "question": 1, "questions": 5}
_FIRST_SCREENER = _field("adult", "choice", "Are you 18 or older?", options=["yes", "no"], labels=["Yes", "No"])

# By name, in the order of a sitting.
STEPS: dict[str, Json] = {
    "form, before the items": _step(1, "form", "Before you begin", fields=[_FIRST_SCREENER]),
    "instructions": _step(2, "instructions", "Your task", "Read this.\n\n- one\n- two"),
    "practice, first screen": _step(3, "practice", _FIRST, "Try it.", screen=_prior(EXAMPLE)),
    "practice, second screen": _step(
        4,
        "practice",
        _NOW,
        "Try it.",
        screen=_posterior("direction", *_DIRECTION, target=EXAMPLE, evidence=BESIDE),
    ),
    "practice, reasons": _step(5, "practice", _WHY, "Try it.", screen=_explanation(EXAMPLE, BESIDE)),
    "practice, own answer": _step(6, "practice", _OWN, "Try it.", screen=_own_answer(EXAMPLE)),
    "practice, what was entered": _step(
        7,
        "practice",
        "An example",
        "Try it.",
        feedback=["On the first page you entered 62 %, and on the second page 70 %."],
    ),
    "comprehension checks": _step(8, "checks", "A question", checks=[_WHAT], attempt=1),
    "comprehension checks, second attempt": _step(
        9, "checks", "A question", checks=[_WHAT], attempt=2, hints=["Those of language models."]
    ),
    "item, first screen": _step(10, "item", _FIRST, **_FIRST_ITEM, screen=_prior(QUESTION)),
    "item, direction asked for": _step(11, "item", _NOW, **_FIRST_ITEM, screen=_posterior("direction", *_DIRECTION)),
    "item, blank field": _step(
        11,
        "item",
        _NOW,
        **_FIRST_ITEM,
        screen=_posterior(
            "blank",
            _percent("Your answer in percent, from 0 to 100"),
            ask="You may give the same number or another one.",
        ),
    ),
    "item, a button to keep the number": _step(
        11,
        "item",
        _NOW,
        **_FIRST_ITEM,
        screen=_posterior("keep_button", _percent(_AGAIN, required=False), _KEEP),
    ),
    "item, prefilled": _step(
        11, "item", _NOW, **_FIRST_ITEM, screen=_posterior("prefilled", _percent(_AGAIN, initial=62))
    ),
    "item, reasons": _step(12, "item", _WHY, **_FIRST_ITEM, screen=_explanation(QUESTION, OTHER)),
    "item, own answer": _step(13, "item", _OWN, **_FIRST_ITEM, screen=_own_answer(QUESTION)),
    "attention check": _step(18, "attention", "", checks=[_READ], question=3, questions=5),
    "form, every type of field": _step(
        27,
        "form",
        "About you",
        fields=[
            _field("age", "integer", "Your age", required=False, minimum=18, maximum=99),
            _field(
                "sure",
                "likert",
                "How sure were you?",
                options=["1", "2", "3", "4", "5"],
                labels=["not at all", "", "", "", "fully"],
            ),
            _field(
                "tools",
                "multiple",
                "What did you use?",
                options=["pen", "paper", "nothing", "prefer_not_to_say"],
                labels=["A pen", "Paper", "Nothing", "Prefer not to say"],
                exclusive=["nothing", "prefer_not_to_say"],
            ),
            _field("remark", "text", "Anything else?", max_length=200),
        ],
    ),
    "form, a ready one": _step(
        28,
        "form",
        "How you answered",
        "Whatever you say here helps us to read your answers as you meant them.",
        fields=[
            _field(
                "looked_up",
                "choice",
                "Did you look anything up or ask an AI? Your pay is unaffected.",
                required=False,
                options=["no", "looked_up", "asked_ai", "both", "prefer_not_to_say"],
                labels=["No, neither", "I looked something up", "I asked an AI", "Both", "Prefer not to say"],
            )
        ],
    ),
    "debriefing with a choice": _step(
        29,
        "debriefing",
        "What it was about",
        "It was about expectations.",
        fields=[
            _field(
                "my_data",
                "choice",
                "May we use your answers?",
                options=["use", "withdraw"],
                labels=["Use my data", "Withdraw my data"],
                hint="If you withdraw your answers, we delete them at once, and we cannot bring them back.",
            ),
            _field(
                "my_data_confirmed",
                "choice",
                "Do you want us to delete all your answers?",
                required=False,
                options=["yes"],
                labels=["Yes, delete my answers"],
                hint="This deletes everything that you gave us in this study:\n"
                "- your answers to all questions and forms\n"
                "- what you wrote in your own words, and your remarks\n"
                "- the times of the pages, and how you entered your answers\n\n"
                "It is done at once, and we cannot bring anything back.\n\n"
                "What stays: when and in which language you agreed to take part, when you ended and withdrew, which "
                "questions and versions lay before you, how much was deleted, and a code by which we notice if you "
                "come again.",
            ),
        ],
    ),
    "end, completed": _step(30, "end", "The end", "Thank you.", outcome="completed", code="C7QX4M2P9K"),
    "end, comprehension checks failed": _step(
        10, "end", "The end", "Thank you for your time.", outcome="failed_checks", code="F3WN8T6B2H"
    ),
    "end, screened out": _step(
        2, "end", "The end", "Thank you for your answers.", outcome="screened_out", code="S5LD9R4V7J"
    ),
    "end, all places taken": _step(
        9, "end", "The end", "Thank you for your time.", outcome="study_full", code="U2HG6Z8Y3N"
    ),
}
# What is sent at the step of the same name. A step that is only read needs just its number.
ANSWERS: dict[str, Json] = {
    "form, before the items": {"step": 1, "adult": "yes"},
    "instructions": {"step": 2},
    "practice, first screen": {"step": 3, "value": 62},
    "practice, second screen": {"step": 4, "direction": "higher", "value": 70},
    "practice, reasons": {"step": 5, "explanation": "Both are about everyday things."},
    "practice, own answer": {"step": 6, "answer": "water", "confidence": 90},
    "practice, what was entered": {"step": 7},
    "comprehension checks": {"step": 8, "what": "1"},
    "comprehension checks, second attempt": {"step": 9, "what": "2"},
    "item, first screen": {
        "step": 10,
        "screen": "prior",
        "value": 62,
        "client_shown_ms": 140,
        "client_submitted_ms": 9800,
    },
    "item, direction asked for": {
        "step": 11,
        "screen": "posterior",
        "direction": "higher",
        "value": 70,
        "value_by": "typed",
        "value_first": 70,
        "value_changes": 1,
    },
    "item, blank field": {"step": 11, "value": 70},
    "item, a button to keep the number": {"step": 11, "keep": "yes"},
    "item, prefilled": {"step": 11, "value": 62, "value_by": "prefilled"},
    "item, reasons": {"step": 12, "explanation": "If it knows the planets, it can do small sums."},
    "item, own answer": {"step": 13, "answer": "56", "confidence": 95},
    "attention check": {"step": 18, "read": "1"},
    "form, every type of field": {"step": 27, "age": 34, "sure": "4", "tools": ["pen", "paper"], "remark": "No."},
    "form, a ready one": {"step": 28, "looked_up": "no"},
    "debriefing with a choice": {"step": 29, "my_data": "use"},
}


def _error(code: str, message: str, **fields: list[str]) -> Json:
    return {"error": {"code": code, "message": message, **({"fields": fields} if fields else {})}}


_NO_TOKEN = "Authentication credentials were not provided."  # noqa: S105
_TOO_HIGH = "The highest answer is 100. Enter a number from 0 to 100."
# By status and name.
ERRORS: dict[int, dict[str, Json]] = {
    400: {
        "no JSON": _error("parse_error", "The body is not JSON in UTF-8, or a number in it is too large."),
        "a field that is missing": _error("invalid", "step: This field is required.", step=["This field is required."]),
        "a filter that does not exist (researchers)": _error(
            "invalid",
            "stge: There is no such filter. There are: stage, condition.",
            stge=["There is no such filter. There are: stage, condition."],
        ),
    },
    401: {"no token (researchers)": _error("not_authenticated", _NO_TOKEN)},
    403: {
        "an unknown sitting": _error(
            "sitting_unknown",
            "We could not find your place in this study. Please open the link that you were given once more.",
        ),
        "all places taken": _error(
            "full", "All places of this study are taken at the moment. Nothing has been recorded."
        ),
        "not open": _error("closed", "This study is not open at the moment. Nothing has been recorded."),
        "no permission (researchers)": _error(
            "permission_denied", "Your account lacks the permission to export answers (survey.export_study)."
        ),
    },
    404: {
        "no such study": _error("not_found", "There is no study at this address. Please check the link you were given.")
    },
    409: {
        "a step that has not been reached": _error(
            "out_of_order", "This page has not been reached yet. Please go on from where you are."
        )
    },
    410: {"files that are gone": _error("job_gone", "job 7: its files are no longer kept; ask for it again")},
    413: {"too large": _error("too_large", "What was sent is too large: at most 262144 bytes.")},
    415: {"no JSON": _error("unsupported_media_type", 'Unsupported media type "text/plain" in request.')},
    422: {"an answer outside 0 to 100": _error("invalid", f"value: {_TOO_HIGH}", value=[_TOO_HIGH])},
    429: {
        "too many requests": _error("throttled", "Request was throttled. Expected available in 12 seconds."),
        "too many people of one address": _error(
            "too_many_from_here",
            "Too many people have come from your network in a short time. Nothing has been recorded. "
            "Please try again in 42 minutes.",
        ),
    },
    503: {
        "the database is away": _error(
            "unavailable",
            "The database or the disk cannot be used at the moment. Please try again in a minute. If you have sent "
            "something, look first whether it was stored.",
        ),
        "the panel cannot be asked": _error(
            "entry_not_checked",
            "We cannot check your link at the moment. You have done nothing wrong, and nothing has been recorded. "
            "Please try again in 1 minute.",
        ),
        "the study's items are missing": _error(
            "instrument_missing",
            "This study cannot be shown at the moment. Nothing is lost: what you have answered is stored. "
            "Please try again later, or write to those who run the study.",
        ),
    },
}
