"""What an instrument may hand over for the reports that compare people and models."""

from dataclasses import replace

import numpy as np
import pytest

from survey.contracts.expectations import ComparedEvent, Expectations, Forecast, ItemReader, Items

EVENT = ComparedEvent("word", "the next person writes the word", "whether they wrote it", "the chance of it")
GOOD = Expectations(
    event=EVENT,
    items=Items(["a", "b"], texts=["first", "second"], groups={"task": np.array(["x", "y"])}),
    item=np.array([0, 0, 1]),
    person=np.array([1, 2, 1]),
    weight=np.ones(3),
    value=np.array([1.0, 0.0, 0.5]),
    readers=(ItemReader("model", "model", np.array([0.2, np.nan])),),
    forecasts=(Forecast("before", np.full(3, 0.5)),),
)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"person": np.array([1, 2])}, "person: shape"),
        ({"item": np.array([0, 0, 2])}, "item: must name one of the 2 items"),
        ({"weight": np.array([1.0, 0.0, 1.0])}, "weight: must be above 0"),
        ({"item_weight": np.array([1.0, np.inf])}, "item_weight: must be above 0"),
        ({"value": np.array([1.0, 0.0, 1.5])}, "value: must lie between 0 and 1"),
        ({"others": np.array([1.0, -0.1, np.nan])}, "others: must lie between 0 and 1"),
        ({"said": ["yes"]}, "said: shape"),
        ({"items": Items(["a", "b"], texts=["first"])}, "texts: shape"),
        ({"items": Items(["a", "b"], groups={"task": np.array(["x"])})}, "groups"),
        ({"forecasts": (Forecast("before", np.full(3, 2.0)),)}, "forecast 'before'"),
        ({"readers": (ItemReader("model", "model", np.array([0.2])),)}, "chance of 'model'"),
        ({"readers": (ItemReader("model", "model", np.array([0.2, 1.2])),)}, "chance of 'model'"),
        ({"readers": (ItemReader("model", "model", np.ones(2), counts=np.full(3, 2.0)),)}, "counts of 'model'"),
        ({"readers": (ItemReader("m", "model", np.ones(2)), ItemReader("m", "judge", np.ones(2)))}, "same name"),
    ],
)
def test_it_names_what_does_not_fit(changed, message):
    with pytest.raises(ValueError, match=message):
        replace(GOOD, **changed)


def test_a_reader_may_say_nothing_about_an_item():
    assert np.isnan(GOOD.readers[0].chance[1])
