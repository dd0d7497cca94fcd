# Computes every figure of estimates.csv again, from design.csv and figures.csv alone: Rscript check.R [FOLDER]
# Needs R with the package survey, and formulas.R beside it. Ends with status 1 where a figure differs.
suppressPackageStartupMessages(library(survey))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
here <- if (length(script)) dirname(script[1]) else "."
folder <- c(commandArgs(TRUE), here)[1]
source(file.path(here, "formulas.R"))
read <- function(name) {
  pattern <- paste0("(^|_description-)", name, "(_data)?[.]csv$")
  path <- list.files(folder, pattern, recursive = TRUE, full.names = TRUE)
  if (!length(path)) return(if (name != "majorities") stop(folder, ": has no ", name, ".csv", call. = FALSE))
  read.csv(path[1], colClasses = "character", na.strings = "", check.names = FALSE, encoding = "UTF-8")
}
text <- "^(study|role|state|respondent|item|question_.|stratum|is_test|(level|by)__.*)$"
numbers_in <- function(table, columns) replace(table, columns, lapply(table[columns], as.numeric))
design <- numbers_in(d <- read("design"), grep(text, names(d), invert = TRUE, value = TRUE))
about <- numbers_in(read("figures"), c("is_part", "lowest", "highest", "odds_ratio"))
compared <- c("value", "standard_error", "degrees_of_freedom", "low", "high", "lowest", "highest", "weight",
              "effective_sample_size", "respondents", "p", "agree_p")
stated <- numbers_in(read("estimates"), c(compared, "stage"))
majorities <- read("majorities")

# The design: parts are the slots of one role of a stage, cells their strata.
design$part <- paste(design$stage, design$role)
design$cell <- paste(design$part, design$stratum)
design$who <- paste(design$stage, design$respondent)
parts <- unique(design$part)
strata <- design[!duplicated(design$cell), ]
plan <- design[design$state %in% c("answered", "planned") & !is.na(design$slot), ]
slots <- table(factor(plan$cell, strata$cell))
have_own_chances <- function(p) sum(strata$part == p) == 1 && diff(range(plan$chance[plan$part == p])) > 0
unequal <- c(sapply(parts, have_own_chances), all = FALSE)
information <- sapply(parts, information_of)
answers <- design[design$state == "answered" & design$wave == 1, ]
unanswered <- design[design$state %in% c("unanswered", "excluded") & design$wave == 1, ]

# The same design as an object of the package survey: people in parts, post-stratified to each stratum's candidates.
by_survey <- function(f) {
  r <- transform(f$r, y = f$y, x = f$x, inside = f$sides[[1]])[f$P[f$r$part] > 0, ]
  r$start <- ifelse(unequal[r$part], 1 / r$chance, 1)
  N <- unique(r[c("part", "cell", "candidates")])
  N$Freq <- f$P[N$part] * N$candidates / sums(N$candidates, N$part)
  people <- svydesign(ids = ~who, strata = ~part, weights = ~start, data = r, nest = TRUE)
  s <- svyratio(~y, ~x, subset(postStratify(people, ~cell, N[c("cell", "Freq")]), inside))
  isTRUE(all.equal(c(coef(s), vcov(s)), c(f$all$value, f$all$linear), check.attributes = FALSE, tolerance = 1e-6))
}

# The figure that a row and those after it are about.
figure_of <- function(row) {
  column <- intersect(paste0(c("level__", "by__"), row$division), names(design))
  if (row$kind == "change within person") column <- NULL
  is_level <- length(column) && startsWith(column, "level__")
  both <- if (length(column)) sort(unique(answers[[column]]), method = "radix")
  parts_of <- function(table) {  # whose rows are on which side
    label <- if (length(column)) table[[column]]
    switch(if (length(column)) row$kind else "everything", difference = ,
           `at any time` = lapply(both, function(l) label %in% l),
           `difference to the rest` = list(!is.na(label) & label != row$label, label %in% row$label),
           everything = list(rep(TRUE, nrow(table))), list(label %in% row$label))
  }
  r <- if (row$kind == "at any time") design[design$state == "answered" & design$stage == row$stage, ] else answers
  if (row$kind == "first items") r <- r[r$position == 1, ]
  if (row$kind == "combined" && is_level) r <- r[parts_of(r)[[1]], ]
  info <- about[about$figure == row$figure, ]
  y <- r[[row$figure]]
  per <- r[[paste0(row$figure, "__per")]]
  f <- list(r = r, y = ifelse(is.na(y), 0, y), x = if (is.null(per)) rep(1, nrow(r)) else ifelse(is.na(y), 0, per))
  side <- r[[paste0(row$figure, "__side")]]
  f$inside <- if (row$kind == "check") list(side %in% 1, side %in% 2) else parts_of(r)
  f$sides <- lapply(f$inside, function(m) m & !is.na(y))
  two <- length(f$sides) == 2
  if (is_level && two) f$under <- f$inside
  f <- c(f, list(kind = info$kind, span = c(info$lowest, info$highest), odds = info$odds_ratio, level = is_level,
                 share = info$kind == "share" && !two, parts_of = parts_of))
  f$pooled <- is.null(f$under) && (info$kind == "ratio" || info$is_part == 1 || length(column) && !is_level)
  f <- with_stages(f)
  is_mean <- info$kind == "mean" && !two && (row$kind == "first items" || length(column))
  if (is_mean && !is.null(f$all) && f$all$size >= 20) f$all <- widen(f$all, errors_of(f))
  f
}

differences <- c("check", "difference", "difference to the rest", "sampled - holdout", "change within person")
assisted <- c("assisted", "assisted difference")
heads <- c(differences, assisted, "combined", "first items", "at any time", "majority", "withheld")
left <- c(setNames(rep("predictions are in no file", 2), assisted), `weighted for leaving` = "conditions are hidden",
          withheld = "groups of too few people have no figures", majority = "there is no majorities.csv here",
          `weighted to the population` = "what people said in forms is not in design.csv")
left <- left[c(TRUE, TRUE, all(is.na(answers$staying)), TRUE, is.null(majorities), TRUE)]
agree <- total <- 0; by_both <- left_out <- c()
for (rows in split(stated, cumsum(stated$kind %in% heads))) {
  if (rows$kind[1] %in% names(left)) rows$kind <- rows$kind[1]
  f <- if (!rows$kind[1] %in% c(names(left), "majority")) figure_of(rows[1, ])
  if (rows$kind[1] == "combined" && is.na(rows$division[1]) && known(f$all)) by_both <- c(by_both, by_survey(f))
  for (k in seq_len(nrow(rows))) {
    row <- rows[k, ]
    left_out <- c(left_out, if (row$kind %in% names(left)) row$kind)
    if (row$kind %in% names(left)) next
    e <- of_row(row, f)
    ends <- cut_to(e$ends, row, f)
    p <- if (row$kind %in% differences && isTRUE(e$se > 0)) 2 * pt(-abs(e$value / e$se), e$df)
    mine <- list(e$value, e$se, e$df, ends[1], ends[2], e$lowest, e$highest, e$weight, e$size, e$people, p, e$agree)
    mine <- sapply(mine, function(x) if (is.null(x)) NA else x)
    theirs <- unlist(row[compared])
    same <- is.na(mine) & is.na(theirs) | !is.na(mine + theirs) & abs(mine - theirs) <= 1e-6 * abs(theirs) + 1e-9
    total <- total + 1
    agree <- agree + all(same)
    if (!all(same)) {
      name <- na.omit(unlist(row[c("figure", "division", "label", "kind", "stage", "role")]))
      differs <- paste(compared[!same], signif(theirs[!same], 7), "is here", signif(mine[!same], 7))
      cat(paste(name, collapse = ", "), ": ", paste(differs, collapse = "; "), "\n", sep = "")
    }
  }
}
cat(sprintf("%d of %d agree to six digits; %d of %d means and linearised errors are those of the package survey\n",
            agree, total, sum(by_both), length(by_both)))
for (kind in unique(left_out))
  cat(sprintf("not computed: %d rows %s, since %s\n", sum(left_out == kind), kind, left[[kind]]))
if (length(missing <- missing_of(stated)))
  cat(sprintf("%d rows are missing in estimates.csv: %s\n", length(missing), paste(missing, collapse = "; ")))
quit(status = if (agree < total || !all(by_both) || length(missing)) 1 else 0)
