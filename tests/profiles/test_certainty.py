"""The [confidence] table: what is allowed, and what is refused where."""

from __future__ import annotations

from typing import Any

import pytest

from recollect import profiles
from recollect.encoders.catalogue import MODELS
from recollect.profiles import certainty
from recollect.profiles.checking import Wrong
from recollect.stages.confidence import weighed

PLAIN: dict[str, Any] = {"name": "c", "intercept": 0, "weights": {"covered": 1}, "curve": [[0.9, 1, 0.1]]}


def test_the_default_keeps_97_of_100_where_nobody_asked_and_all_where_somebody_did() -> None:
    recipe = profiles.load("balanced").confidence
    assert recipe is not None and (recipe.keep, recipe.keep_unasked) == (1.0, 0.97)
    embedders = [name for name, model in MODELS.items() if model.is_embedder]
    assert sorted(one.model for one in recipe.calibrations) == sorted([*embedders, ""])
    for one in recipe.calibrations:
        assert set(one.weights) == set(one.typical) and one.fitted
        assert one.curve[0].kept <= 0.97 <= one.curve[-1].kept


@pytest.mark.parametrize(
    ("table", "place", "message"),
    [
        ({"keep": 0.2}, "confidence.keep", "between 0.5 and 1"),
        ({"kept": 0.9}, "confidence.kept", "unknown option"),
        ({"calibrations": {}}, "confidence.calibrations", "must be a list"),
        ({"calibrations": ["x"]}, "confidence.calibrations.0", "must be a table"),
        ({"calibrations": [{"name": "c"}]}, "confidence.calibrations.0", "intercept is missing"),
        ({"calibrations": [{**PLAIN, "weights": {"luck": 1}}]}, "confidence.calibrations.0.weights", "unknown sign"),
        ({"calibrations": [{**PLAIN, "typical": {"luck": 1}}]}, "confidence.calibrations.0.typical", "unknown sign"),
        ({"calibrations": [{**PLAIN, "curve": [[0.9, 1]]}]}, "confidence.calibrations.0.curve", "must hold 3 values"),
        (
            {"calibrations": [{**PLAIN, "curve": [[0.9, 1, 0], [0.95, 2, 0]]}]},
            "confidence.calibrations.0.curve",
            "must rise",
        ),
    ],
)
def test_wrong_tables_are_refused_where_they_are_wrong(table: dict[str, Any], place: str, message: str) -> None:
    with pytest.raises(Wrong, match=message) as caught:
        certainty.recipe(table)
    assert caught.value.path == place


def test_a_question_in_another_language_is_not_silenced_for_its_words() -> None:
    """With the embedder of several languages a near memory counts although none of the words is known here; where the
    words are known and the near memories lack them, it does not."""
    recipe = profiles.load("balanced").confidence
    assert recipe is not None
    (calibration,) = (one for one in recipe.calibrations if one.model == "use-multilingual")
    seen = {**calibration.typical, "covered": 0.0, "together": 0.0, "by_words": 0.0, "rarity": 1.0, "close": 0.4}
    foreign, lacking = (weighed({**seen, "unknown": share}, calibration, 0.97) for share in (1.0, 0.0))
    assert foreign.floor is not None and lacking.floor is not None
    assert foreign.chance > foreign.floor and lacking.chance < lacking.floor
