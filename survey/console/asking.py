"""The options of commands that ask a language model: its name, requests in flight and money."""

from argparse import ArgumentParser, ArgumentTypeError
from decimal import Decimal, InvalidOperation

MODEL_HELP = "the server's name for it, or local:FOLDER"


def add_asking_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--name", default="", help="the name that tables show (the model's, if left out)")
    parser.add_argument("--concurrency", type=int, default=8, metavar="K", help="requests in flight")
    parser.add_argument("--price-in", type=amount, metavar="P", help="for a million tokens sent")
    parser.add_argument("--price-out", type=amount, metavar="P", help="for a million tokens returned")
    parser.add_argument("--cost-cap", type=amount, metavar="P", help="stop once this much is spent")


def amount(text: str) -> Decimal:
    """
    Raises:
        ArgumentTypeError: it is no amount of money.
    """
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ArgumentTypeError(f"{text!r} is not an amount such as 0.15") from None
