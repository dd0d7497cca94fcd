"""What the documents for newcomers say is so: the sheet of the study file is a study file, and what Hunch can and cannot."""

import pytest

pytestmark = pytest.mark.any_database
