"""The same comparison by generalised additive mixed models: a script for R's package mgcv, and the data for it.

Nothing is fitted here: the package is not a part of Hunch. Both models of a comparison are fitted to the same rows, by
maximum likelihood; by restricted likelihood two models with other fixed effects could not be compared.
"""

import csv
import io
from collections.abc import Sequence

import numpy as np

from predictors.word_forms import stripped

from .material import ReadingMaterial

DATA, SCRIPT = "reading_gamm.csv", "reading_gamm.R"


def data(material: ReadingMaterial) -> bytes:
    """A row a time that counts and has words before it: person, passage, position, length and log frequency of this and
    of the words before, and the surprisals of each model. Empty cells are NA."""
    prepared, previous = material.prepared, material.previous
    number = np.full(len(material.words.word), -1, dtype=np.int64)
    number[prepared.row] = np.arange(len(prepared.row))
    length = np.array([len(stripped(word)) for word in material.words.word], dtype=np.int64)
    rows, times = np.flatnonzero(number[material.kept.word] >= 0), material.kept
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header(material))
    for row in rows.tolist():
        word = int(times.word[row])
        group = [word, *prepared.before[number[word]].tolist()]
        cells: list[object] = [
            f"p{int(times.person[row])}",
            f"t{int(times.passage[row])}",
            int(material.words.position[word]),
            f"{times.time[row]:.10g}",
        ]
        if (fixated := material.kept_singles.fixated) is not None:
            cells.append("NA" if np.isnan(fixated[row]) else int(fixated[row]))
        for index in group:
            cells += [int(length[index]), f"{material.words.log_frequency[index]:.10g}"]
        for surprisal in material.models.values():
            cells += ["NA" if not np.isfinite(surprisal[row]) else f"{surprisal[row]:.10g}" for row in group]
        table.writerow(cells)
    assert previous == prepared.before.shape[1]  # noqa: S101 - the header counts by it
    return text.getvalue().encode()


def header(material: ReadingMaterial) -> list[str]:
    back = range(material.previous + 1)
    names = ["person", "passage", "position", "time"]
    if material.fixated is not None:
        names.append("previous_fixated")
    names += [f"{name}_{place}" for place in back for name in ("length", "logfreq")]
    return names + [f"surprisal_{model}_{place}" for model in range(1, len(material.models) + 1) for place in back]


def script(material: ReadingMaterial) -> bytes:
    """The script. It reads the data next to it and writes `reading_gamm_results.csv`."""
    names = ", ".join(_quoted(name) for name in material.models)
    terms = [f'pair("length_{place}", "logfreq_{place}")' for place in _back(material)] + ["alone"]
    if material.fixated is not None:
        terms.append('"previous_fixated"')
    if material.has_people:
        terms += ["person", "passage"]
    wanted = ", ".join(f'"surprisal_{place}"' for place in _back(material))
    needed = wanted if material.fixated is None else f'{wanted}, "previous_fixated"'
    return f"""# Delta log-likelihood of reading times by generalised additive mixed models. Run it with:
#   Rscript {SCRIPT}
# It needs the package mgcv: install.packages("mgcv").
if (!requireNamespace("mgcv", quietly = TRUE)) stop("the package mgcv is missing: install.packages(\\"mgcv\\")")
library(mgcv)
own <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
if (length(own) == 1) setwd(dirname(normalizePath(own)))
all_rows <- read.csv("{DATA}", na.strings = "NA")
all_rows$person <- factor(all_rows$person)
all_rows$passage <- factor(all_rows$passage)
models <- c({names})
# How many values a column has; a smooth term cannot have more knots.
different <- function(column) length(unique(column))
results <- NULL
for (number in seq_along(models)) {{
  rows <- all_rows
  for (place in {material.previous}:0) {{
    rows[[paste0("surprisal_", place)]] <- rows[[paste0("surprisal_", number, "_", place)]]
  }}
  # The same rows in both models.
  rows <- rows[complete.cases(rows[, c({needed}, "time")]), ]
  # A tensor product of two columns; straight lines where the rows have too few values for it.
  pair <- function(one, other) {{
    most <- floor(sqrt(nrow(unique(rows[, c(one, other)]))))
    knots <- pmin(5, c(different(rows[[one]]), different(rows[[other]])), most)
    if (min(knots) < 3) return(paste(one, other, sep = " + "))
    sprintf("te(%s, %s, k = c(%d, %d))", one, other, knots[1], knots[2])
  }}
  places <- min(10, different(rows$position))
  alone <- if (places < 3) "position" else sprintf("s(position, k = %d)", places)
  person <- if (different(rows$person) < 2) NULL else 's(person, bs = "re")'
  passage <- if (different(rows$passage) < 2) NULL else 's(passage, bs = "re")'
  terms <- c({", ".join(terms)})
  added <- c({wanted})
  without <- gam(reformulate(terms, "time"), data = rows, method = "ML")
  with_it <- gam(reformulate(c(terms, added), "time"), data = rows, method = "ML")
  delta <- as.numeric(logLik(with_it)) - as.numeric(logLik(without))
  results <- rbind(results, data.frame(model = models[number], delta_log_likelihood = delta, rows = nrow(rows),
                                       ms_a_nat = unname(coef(with_it)["surprisal_0"])))
}}
print(results)
write.csv(results, "reading_gamm_results.csv", row.names = FALSE)
""".encode()


def _back(material: ReadingMaterial) -> Sequence[int]:
    return range(material.previous + 1)


def _quoted(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
