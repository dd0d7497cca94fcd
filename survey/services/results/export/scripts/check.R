# Computes every figure of estimates.csv again, from the files design, figures and, of a study that is weighted to a
# population, margins alone: Rscript check.R [FOLDER]
# Needs R with the package survey, and formulas.R beside it. Ends with status 1 where a figure differs.
suppressPackageStartupMessages(library(survey))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
here <- if (length(script)) dirname(script[1]) else "."
folder <- c(commandArgs(TRUE), here)[1]
source(file.path(here, "formulas.R"))
read <- function(name) {
  pattern <- paste0("(^|_description-)", name, "(_data)?[.]csv$")
  path <- list.files(folder, pattern, recursive = TRUE, full.names = TRUE)
  if (!length(path) && name %in% c("majorities", "margins")) return()
  if (!length(path)) stop(folder, ": has no ", name, ".csv", call. = FALSE)
  read.csv(path[1], colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8")
}
text <- "^(study|role|state|respondent|item|question_.|stratum|is_test|(level|group|by|margin)__.*)$"
numbers_in <- function(table, columns) replace(table, columns, lapply(table[columns], as.numeric))
design <- numbers_in(d <- read("design"), grep(text, names(d), invert = TRUE, value = TRUE))
about <- numbers_in(read("figures"), c("is_part", "lowest", "highest", "odds_ratio"))
compared <- c("value", "standard_error", "degrees_of_freedom", "low", "high", "lowest", "highest", "weight",
              "effective_sample_size", "respondents", "p", "agree_p", "coefficient")
nothing <- ifelse(compared %in% c("p", "agree_p"), 0, 1e-9)  # figures that differ by no more are alike
stated <- numbers_in(read("estimates"), c(compared, "stage"))
majorities <- read("majorities")
margins <- read("margins")

# The design: parts are the slots of one role of a stage, cells their strata; all by numbers, as these go fast.
numbered <- function(...) { x <- paste(...); match(x, unique(x)) }
parts <- unique(paste(design$stage, design$role))
design$part <- match(paste(design$stage, design$role), parts)
design$cell <- numbered(design$part, design$stratum)
design$who <- numbered(design$stage, design$respondent)
design$respondent <- match(design$respondent, unique(design$respondent))
design$item <- match(design$item, unique(design$item))
questions <- unique(na.omit(c(design$question_1, design$question_2)))
design[c("question_1", "question_2")] <- lapply(design[c("question_1", "question_2")], match, questions)
strata <- design[!duplicated(design$cell), ]
plan <- design[design$state %in% c("answered", "planned") & !is.na(design$slot), ]
slots <- tabulate(plan$cell, nrow(strata))
have_own_chances <- function(p) sum(strata$part == p) == 1 && diff(range(plan$chance[plan$part == p])) > 0
unequal <- vapply(seq_along(parts), have_own_chances, NA)
information <- vapply(seq_along(parts), information_of, 0)
adaptive <- sub(" .*", "", parts[endsWith(parts, "sampled") & (unequal | tabulate(strata$part) > 1)])  # stages
answers <- design[design$state == "answered" & design$wave == 1, ]
unanswered <- design[design$state %in% c("unanswered", "excluded") & design$wave == 1, ]
helped <- if (any(!is.na(answers$prediction_mean))) about$figure[about$kind != "check" & about$is_part == 0]
core <- c("part", "cell", "who", "respondent", "item", "several", "candidates", "universe", "chance", "staying",
          "question_1", "question_2", "prediction", "prediction_mean")

# The same design as an object of the package survey: people in parts, post-stratified to each stratum's candidates.
by_survey <- function(f) {
  i <- f$P[f$r$part] > 0
  r <- data.frame(take(f$r[core], i), y = f$y[i], x = f$x[i], inside = f$sides[[1]][i])
  r$start <- ifelse(unequal[r$part], 1 / r$chance, 1)
  N <- unique(r[c("part", "cell", "candidates")])
  N$Freq <- f$P[N$part] * N$candidates / sums(N$candidates, N$part)
  people <- svydesign(ids = ~who, strata = ~part, weights = ~start, data = r, nest = TRUE)
  s <- svyratio(~y, ~x, subset(postStratify(people, ~cell, N[c("cell", "Freq")]), inside))
  isTRUE(all.equal(c(coef(s), vcov(s)), c(f$all$value, f$all$linear), check.attributes = FALSE, tolerance = 1e-6))
}

# Each row of estimates.csv stands behind the head of its figure: those of stages, and those under other assumptions.
differences <- c("check", "difference", "difference to the rest", "sampled - holdout", "change within person",
                 "assisted difference")
assisted <- c("assisted", "assisted difference")
next_to <- c("naive", "such questions", "weighted to the population", "weighted for leaving", "bounds",
             "bounds with excluded", "worst case")
heads <- c(differences, "assisted", "combined", "first items", "at any time", "majority", "withheld")
left <- c(`weighted for leaving` = "conditions are hidden", majority = "there is no majorities.csv here",
          `weighted to the population` = "people's groups are not in design.csv")
left <- left[c(all(is.na(answers$staying)), is.null(majorities), is.null(margins))]
of_people <- if (!is.null(margins)) weights_of_people()
agree <- 0; by_both <- left_out <- expected <- c()
for (rows in split(stated, cumsum(stated$kind %in% heads))) {
  if (rows$kind[1] %in% names(left)) rows$kind <- rows$kind[1]
  f <- if (!rows$kind[1] %in% c(names(left), "majority", "withheld")) figure_of(rows[1, ])
  if (rows$kind[1] == "combined" && is.na(rows$division[1]) && known(f$all)) by_both <- c(by_both, by_survey(f))
  if (!is.null(f)) expected <- c(expected, rest_of(rows, f))
  for (k in seq_len(nrow(rows))) {
    row <- rows[k, ]
    left_out <- c(left_out, if (row$kind %in% names(left)) row$kind)
    if (row$kind %in% names(left)) next
    e <- of_row(row, f)
    ends <- cut_to(e$ends, row, f)
    p <- if (row$kind %in% differences && isTRUE(e$se > 0)) 2 * pt(-abs(e$value / e$se), e$df)
    mine <- list(e$value, e$se, e$df, ends[1], ends[2], e$lowest, e$highest, e$weight, e$size, e$people, p, e$agree,
                 e$coefficient)
    mine <- sapply(mine, function(x) if (is.null(x)) NA else x)
    theirs <- unlist(row[compared])
    same <- is.na(mine) & is.na(theirs) | !is.na(mine + theirs) & abs(mine - theirs) <= 1e-6 * abs(theirs) + nothing
    agree <- agree + all(same)
    if (!all(same)) {
      name <- na.omit(unlist(row[c("figure", "division", "label", "kind", "stage", "role")]))
      differs <- paste(compared[!same], signif(theirs[!same], 7), "is here", signif(mine[!same], 7))
      cat(paste(name, collapse = ", "), ": ", paste(differs, collapse = "; "), "\n", sep = "")
    }
  }
}
total <- nrow(stated) - length(left_out)
cat(sprintf("%d of %d agree to six digits; %d of %d means and linearised errors are those of the package survey\n",
            agree, total, sum(by_both), length(by_both)))
for (kind in unique(left_out))
  cat(sprintf("not computed: %d rows %s, since %s\n", sum(left_out == kind), kind, left[[kind]]))
there <- named(stated$figure, stated$division, stated$label, stated$kind,
               ifelse(is.na(stated$stage), NA, paste(stated$stage, stated$role)))
if (length(missing <- setdiff(c(heads_of(stated), expected), there)))
  cat(sprintf("%d rows are missing in estimates.csv: %s\n", length(missing), paste(missing, collapse = "; ")))
quit(status = if (agree < total || !all(by_both) || length(missing)) 1 else 0)
