"""The corpus: attacks on what reads strangers' text, written for this project, as data.

Each has a goal that can be checked. ``test_corpus`` shows that the obedient model reaches them when
nothing stands in between, and that the well-behaved one reaches none; so whatever keeps an obedient
model from a goal is a boundary of the product.
"""

from collections.abc import Sequence

from tests.injection.attack import OUTSIDE, Attack
from tests.injection.corpus_forms import FORM_ATTACKS, forms_that_reach_out
from tests.injection.corpus_issues import ISSUE_ATTACKS, issues_that_reach_out
from tests.injection.corpus_material import MATERIAL_ATTACKS, material_that_reaches_out


def attacks(outside: str = OUTSIDE) -> Sequence[Attack]:
    """All attacks. ``outside``: the path of a file of another repository that some want to read."""
    return (
        *ISSUE_ATTACKS,
        *FORM_ATTACKS,
        *MATERIAL_ATTACKS,
        *issues_that_reach_out(outside),
        *forms_that_reach_out(outside),
        *material_that_reaches_out(outside),
    )


ATTACKS = attacks()
