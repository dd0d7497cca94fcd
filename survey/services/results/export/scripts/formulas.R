# The formulas of codebook.md as functions of base R, written for check.R without a line of Hunch's own code.
# `r`: answers by the columns of design.csv, with `part` (stage and role), `cell` (stratum of a part) and `who`.
# `y`, `x`: the values whose ratio the figure is. `sides`: which answers it is about; of a difference, first what is
# taken off.

kish <- function(w) sum(w)^2 / sum(w^2)
sums <- function(x, by) ave(x, by, FUN = sum)
ratio <- function(a, b) ifelse(b > 0, a / b, 0)
more_than_one <- function(n) n / pmax(n - 1, 1)
clustered <- function(x, by) {
  n <- length(unique(by))
  if (n < 2) NA else n / (n - 1) * sum(rowsum(x, by)^2)
}
crossed <- function(one, other, both) max(one + other - both, min(one, other))
satterthwaite <- function(v, f) if (sum(v) > 0) sum(v)^2 / sum(v^2 / f) else sum(f)

# Weights that sum to 1 in each part: N_h / r_h, or 1 / chance; over the chance of staying with `stay`.
weights_of <- function(r, under = 1, stay = FALSE) {
  w <- under * ifelse(unequal[r$part], 1 / r$chance, 1) / (if (stay) r$staying else 1)
  w <- ifelse(unequal[r$part], w, w * r$candidates / sums(w, r$cell))
  w / sums(w, r$part)
}

# A plan's information: its slots over the design effects of unequal chances and of several answers a person.
information_of <- function(p) {
  own <- strata$part == p
  N <- strata$candidates[own]
  n <- slots[strata$cell[own]]
  people <- strata$dealt_to[own][1]
  if (any(n == 0)) return(0)
  if (unequal[p]) {
    alone <- 1 / kish(1 / plan$chance[plan$part == p])
    shared <- alone + (1 - alone) / people
  } else {
    alone <- sum(N^2 / n) / sum(N)^2
    uneven <- sum((N / n)^2 * ((n / people) %% 1) * (1 - (n / people) %% 1)) / sum(N)^2
    shared <- max(alone, 1 / people + people * uneven)
  }
  1 / (0.8 * alone + 0.2 * shared)
}

# Estimates and intervals

interval <- function(value, se, df, size, share) {
  if (is.na(se)) return(c(NA, NA))
  t <- qt(0.975, df)
  ends <- if (se > 0) value + c(-1, 1) * t * se else c(NA, NA)
  if (!share || value < 0 || value > 1) return(ends)
  spread <- value * (1 - value)
  n <- if (se > 0 && spread > 0) min(size, spread / se^2) else size
  if (n * min(value, 1 - value) >= 10 && !isTRUE(ends[1] < 0 || ends[2] > 1)) return(ends)
  k <- t^2 / n  # Wilson's
  pmin(1, pmax(0, (value + k / 2 + c(-1, 1) * t * sqrt(spread / n + k / (4 * n))) / (1 + k)))
}
result <- function(value, variance, df, size, share, people, alike = 1, linear = NA) {
  se <- sqrt(variance)
  if (!is.na(se) && se <= 1e-12 * max(1, abs(value))) se <- 0
  list(value = value, se = se, df = df, size = size, share = share, people = people, linear = linear,
       ends = interval(value, se, df, if (is.na(se) || se > 0) size else size * alike, share))
}
with_error <- function(e, se, df) {
  modifyList(e, list(se = se, df = df, ends = interval(e$value, se, df, e$size, e$share)))
}
known <- function(e) !is.null(e) && !anyNA(e$ends)

# The least variance ("floor"): the spread of single answers over the effective size.
spread_of <- function(distance, relative, stretch, lost) {
  k <- 1 / sum(relative^2)
  if (length(distance) <= lost) return(0)
  (k^2 * sum(relative^2 * distance^2 * stretch) + 10 * sum(distance^2) / (length(distance) - lost)) / (k + 10)
}
floor_of <- function(r, W, errors, sides, by_class) {
  n <- sums(rep(1, nrow(r)), r$cell)
  of <- lapply(seq_along(sides), function(s) {
    m <- sides[[s]]
    relative <- W[[s]][m] / sum(W[[s]][m])
    own <- list(distance = errors[[s]][m] / relative, relative = relative, stretch = more_than_one(n)[m],
                lost = max(1, sum(1 / n[m])))
    if (by_class) {  # from answers of about the same weight, in five classes
      class <- findInterval(relative, quantile(relative, 1:4 / 5), left.open = TRUE)
      own$distance <- own$distance - ave(own$distance, class)
      own$stretch <- more_than_one(sums(rep(1, sum(m)), class))
      own$lost <- max(own$lost, length(unique(class)))
    }
    own
  })
  shrink <- sapply(of, function(o) sum(o$relative^2))
  who <- unlist(lapply(sides, function(m) r$who[m]))
  n <- length(who)
  people <- length(unique(who))
  if (length(of) == 1 || people == n) return(sum(shrink * sapply(of, do.call, what = spread_of)))
  distance <- unlist(lapply(of, `[[`, "distance"))
  inside_people <- distance - ave(distance, who)  # what people bring to both sides cancels out
  sum(shrink) * spread_of(inside_people, unlist(lapply(of, `[[`, "relative")) / 2, n / (n - people), people)
}

# The variance by respondent and by item of one part; with `corrected` less the part of the items that was drawn.
by_item <- function(r, e, by_person, corrected) {
  items <- r[!duplicated(r$item), ]
  i <- match(r$item, items$item)
  total <- rowsum(e, i)[, 1]
  squares <- rowsum(e^2, i)[, 1]
  k <- as.vector(table(i))
  in_cell <- function(x) as.vector(tapply(x, items$cell, sum))
  count <- as.vector(table(items$cell))
  both <- more_than_one(as.vector(table(r$cell))) * in_cell(squares)
  products <- more_than_one(count) * in_cell(total^2) - both
  if (!corrected) return(crossed(by_person, sum(products + both), sum(both)))
  products <- pmax(products, 0)
  pool <- if (is.na(r$universe[1])) 1 else sum(strata$candidates[strata$part == r$part[1]]) / r$universe[1]
  f <- pmin(pool * count / items$candidates[match(sort(unique(items$cell)), items$cell)], 1)
  between <- ratio(products * in_cell(k^2), in_cell(k * (k - 1)))
  inside <- ifelse(k > 1, (squares - total^2 / k) * more_than_one(k), 0)
  max(by_person + sum(products - f * between), sum(inside) + sum((1 - f) * between))
}

# The figure of one part (`single`), or of several put together before they are divided, with the parts' weights `P`.
# `under`: the levels of a difference between levels, each weighted by its own answers.
estimate <- function(r, y, x, sides, P, share, stay = FALSE, under = NULL, single = FALSE) {
  W <- lapply(seq_along(sides), function(s) P[r$part] * weights_of(r, if (is.null(under)) 1 else under[[s]], stay))
  below <- mapply(function(w, m) sum((w * x)[m]), W, sides)
  means <- mapply(function(w, m) sum((w * y)[m]), W, sides) / below
  residual <- lapply(seq_along(sides), function(s) ifelse(sides[[s]], (y - means[s] * x) / below[s], 0))
  centre <- mapply(function(w, u) sums(w * u, r$cell) / sums(w, r$cell), W, residual, SIMPLIFY = FALSE)
  errors <- mapply(function(w, u, m) w * (u - m), W, residual, centre, SIMPLIFY = FALSE)
  minus <- function(both) if (length(both) == 2) both[[2]] - both[[1]] else both[[1]]
  e <- minus(errors)
  middle <- minus(centre)
  inside <- Reduce(`|`, sides)
  weight <- if (is.null(under)) W[[1]] else W[[1]] + W[[2]]
  used <- unique(r$part[inside])
  v <- f <- first_phase <- linear <- setNames(numeric(length(used)), used)
  alike <- 1
  repeats <- FALSE
  for (p in used) {
    i <- r$part == p
    o <- i & inside
    several <- r$several[i][1] == 1
    people <- length(unique(r$who[o]))
    items <- if (several) length(unique(r$item[o])) else Inf
    f[p] <- max(min(people, items) - 1, 1)
    v[p] <- linear[p] <- clustered(e[i], r$who[i])
    if (single && min(people, items) < 2 || is.na(v[p])) return(NULL)
    groups <- lapply(sides, function(m) unique(r$who[m]))
    apart <- sum(lengths(groups)) == length(unique(r$who[i])) && !any(groups[[1]] %in% groups[[length(groups)]])
    if (single && length(sides) == 2 && (!is.null(under) || unequal[p]) && apart && min(lengths(groups)) > 1) {
      own <- sapply(groups, function(g) clustered(e[r$who %in% g], r$who[r$who %in% g]))  # different people
      v[p] <- sum(own)
      f[p] <- min(f[p], satterthwaite(own, lengths(groups) - 1))
      # Each side by n / (n - 1) of its own people, in the variance by item too.
      for (g in groups) e[r$who %in% g] <- e[r$who %in% g] * sqrt(more_than_one(length(g)) / more_than_one(people))
    }
    if (several) {
      v[p] <- by_item(r[i, ], e[i], v[p], corrected = is.null(under) && !unequal[p])
      repeats <- repeats || (if (single) items < sum(o) else anyDuplicated(r$item[i]) > 0)
      if (single) alike <- items / sum(o)
    }
    if (unequal[p] && diff(range(weight[o])) > 0) {
      f[p] <- min(f[p], max(kish(rowsum(weight[o]^2, r$who[o])[, 1]) - 1, 1))
    }
    if (!is.na(r$universe[i][1]) && !unequal[p]) {
      h <- i & !duplicated(r$cell)
      N <- r$candidates[h]
      spread <- weighted.mean(middle[h]^2, N) - weighted.mean(middle[h], N)^2
      first_phase[p] <- P[p]^2 * (1 / sum(N) - 1 / r$universe[i][1]) * spread
    }
  }
  least <- if (repeats) 0 else floor_of(r, W, errors, sides, length(sides) == 2 && any(unequal[unique(r$part)]))
  if (!single) v <- v + first_phase
  variance <- max(sum(v), least) + if (single) sum(first_phase) else 0
  value <- minus(as.list(means))
  varies <- sqrt(sum(v)) > 1e-12 * max(1, abs(value))  # less is rounding
  df <- if (single) f[[1]] else if (sum(v) >= least && varies) satterthwaite(v, f) else sum(f)
  people <- length(unique(r$who[inside]))
  result(value, variance, df, kish(weight[inside]), share, people, alike, sum(linear))
}

# A mean of the parts' estimates with fixed weights.
combine <- function(estimates, w) {
  w <- w / sum(w)
  of <- function(name) sapply(estimates, `[[`, name)
  v <- of("se")^2
  if (any(v > 0)) v <- ifelse(v > 0, v, min((v * of("size"))[v > 0]) / of("size"))
  result(sum(w * of("value")), sum(w^2 * v), satterthwaite(w^2 * v, of("df")), 1 / sum(w^2 / of("size")),
         estimates[[1]]$share, sum(of("people")), linear = sum(w^2 * of("linear")))
}
less <- function(e, other, same_people = FALSE) {
  se <- c(e$se, other$se)
  df <- c(e$df, other$df)
  result(e$value - other$value, if (same_people) sum(se)^2 else sum(se^2),
         if (same_people) min(df) else satterthwaite(se^2, df), e$size + other$size, FALSE,
         if (same_people) max(e$people, other$people) else e$people + other$people)
}

# Which parts say something: their plan reached all candidates, and answers stand for them.
has_obstacle <- function(r, p) {
  n <- table(factor(r$cell, strata$cell[strata$part == p]))
  information[p] == 0 || any(n == 0) || length(n) > 1 && any(n == 1)
}
has_gap <- function(r, m, p) {  # among n answers none may be of what makes up to 3 / n of the stratum
  s <- strata[strata$part == p, ]
  n <- table(factor(r$cell, s$cell))
  k <- table(factor(r$cell[m], s$cell))
  unseen <- s$candidates * pmin(1, 3 / n)
  nrow(s) > 1 && any(k == 0 & unseen > 0.03 * (sum(s$candidates * k / n) + unseen))
}
weighs <- function(r, p) {
  r <- r[r$part == p, ]
  !has_obstacle(r, p) && length(unique(r$who)) > 1 && (r$several[1] == 0 || length(unique(r$item)) > 1) &&
    kish(weights_of(r)) >= 2
}
of_part <- function(f, p, stay = FALSE) {
  i <- f$r$part == p
  r <- f$r[i, ]
  sides <- lapply(f$sides, `[`, i)
  under <- if (!is.null(f$under)) lapply(f$under, `[`, i)
  levels <- if (is.null(under)) list(rep(TRUE, nrow(r))) else under
  if (any(sapply(levels, function(u) has_obstacle(r[u, ], p))) || stay && anyNA(r$staying)) return(NULL)
  if (any(sapply(sides, function(m) sum(f$x[i][m]) <= 0 || has_gap(r, m, p)))) return(NULL)
  e <- estimate(r, f$y[i], f$x[i], sides, setNames(1, p), f$share, stay, if (!unequal[p]) under, single = TRUE)
  if (is.null(e) || e$size < 2) NULL else e
}
together <- function(f, P, stay = FALSE) {
  i <- f$r$part %in% names(P)[P > 0]
  if (!any(Reduce(`|`, f$sides)[i])) return(NULL)
  e <- estimate(f$r[i, ], f$y[i], f$x[i], lapply(f$sides, `[`, i), P / sum(P), f$share, stay)
  if (is.null(e) || e$size < 2 || e$people < 2) NULL else e
}
with_stages <- function(f) {
  own <- unique(f$r$part)
  f$stages <- setNames(lapply(own, of_part, f = f), own)
  P <- information[own] * !sapply(f$stages, is.null)
  joint <- information[own] * sapply(own, weighs, r = f$r)
  if (any(P > 0) && f$pooled && sum(joint > 0) > 1) {
    P <- joint
    f$all <- together(f, P)
  } else if (any(P > 0)) f$all <- combine(f$stages[P > 0], P[P > 0])
  f$P <- if (is.null(f$all)) 0 * P else P / sum(P)
  f
}
stayed_of <- function(f) {
  if (is.null(f$all) || anyNA(f$r$staying)) return(NULL)
  if (f$pooled && sum(f$P > 0) > 1) return(together(f, f$P, stay = TRUE))
  own <- lapply(names(f$P)[f$P > 0], of_part, f = f, stay = TRUE)
  if (!any(sapply(own, is.null))) combine(own, f$P[f$P > 0])
}
naive_of <- function(f) {
  m <- f$sides[[1]]
  if (sum(f$x[m]) <= 0) return(NULL)
  r <- transform(f$r[m, ], part = "all", cell = "all", who = respondent, several = 0, universe = NA, candidates = 1)
  e <- estimate(r, f$y[m], f$x[m], list(rep(TRUE, sum(m))), c(all = 1), f$share, single = TRUE)
  if (!is.null(e)) return(e)
  list(value = sum(f$y[m]) / sum(f$x[m]), se = NA, df = 0, ends = c(NA, NA), size = sum(m), people = 1)
}
# Welch's test that the stages estimate the same; those of too few answers or people are not compared.
agreement <- function(stages) {
  large <- Filter(function(e) !is.null(e) && e$size >= 30 && e$people >= 10, stages)
  of <- function(name) sapply(large, `[[`, name)
  k <- length(large)
  if (k < 2 || any(of("se") == 0)) return(NA)
  w <- of("se")^-2
  loose <- sum((1 - w / sum(w))^2 / of("df"))
  between <- sum(w * (of("value") - weighted.mean(of("value"), w))^2) / (k - 1)
  pf(between / (1 + 2 * (k - 2) / (k^2 - 1) * loose), k - 1, (k^2 - 1) / (3 * loose), lower.tail = FALSE)
}

# A few answers decide, people who weigh much, questions like these

errors_of <- function(f, stay = FALSE) {  # around each part's mean
  W <- f$P[f$r$part] * weights_of(f$r, stay = stay)
  m <- f$sides[[1]] & W > 0
  r <- f$r[m, ]
  w <- W[m]
  mean <- sums(w * f$y[m], r$part) / sums(w * f$x[m], r$part)
  below <- sum(w * f$x[m])
  errors <- list(r = r, e = w * (f$y[m] - mean * f$x[m]) / below, share = w * f$x[m] / below)
  used <- errors$share != 0
  list(r = errors$r[used, ], e = errors$e[used], share = errors$share[used])
}
widen <- function(e, errors) {
  if (!known(e) || e$se <= 0) return(e)
  d <- rowsum(errors$e, errors$r$who)[, 1]
  h <- rowsum(errors$share, errors$r$who)[, 1]
  if (length(d) < 2 || sum(d^2) <= 0) return(e)
  excess <- sum(d^4) - sum(d^2)^2 / length(d)
  df <- if (excess > 0) max(2 * sum(d^2)^2 / excess, 3) else Inf
  with_error(e, e$se * sqrt(sum((d / (1 - h))^2) / sum(d^2)), min(e$df, df))
}
such_of <- function(e, errors) {
  r <- errors$r
  if (!known(e) || anyNA(r$question_1)) return(NULL)
  two <- which(!is.na(r$question_2) & r$question_2 != r$question_1)
  row <- c(seq_len(nrow(r)), two)
  question <- c(r$question_1, r$question_2[two])
  pair <- paste(pmin(r$question_1, r$question_2), pmax(r$question_1, r$question_2))[two]
  item <- ifelse(r$several == 1, paste(r$part, r$item), seq_len(nrow(r)))
  if (length(unique(question)) < 2) return(NULL)
  squares <- function(x, by) if (length(x)) sum(rowsum(x, by)^2) else 0
  others <- function(x, by, who) squares(x, by) - squares(x, paste(by, who))
  shared <- function(x) others(x[row], question, r$who[row]) - others(x[two], pair, r$who[two]) - others(x, item, r$who)
  missing <- min(max(shared(errors$share), 0), 0.5)
  added <- max((shared(errors$e) + missing * e$se^2) / (1 - missing), 0)
  effective <- kish(rowsum(errors$share[row], question)[, 1]^2)
  with_error(e, sqrt(e$se^2 + added), min(e$df, max(effective - 1, 1)))
}

# Bounds. `lost`: items without an answer, with `inside`: whether they are in the division. `inside`: which answers are.

extreme <- function(f, lost, inside, sign, odds, end) {
  use <- f$P[f$r$part] > 0
  lost <- lost[lost$part %in% names(f$P)[f$P > 0], ]
  r <- rbind(f$r[use, names(design)], lost[names(design)])
  answered <- seq_len(nrow(r)) <= sum(use)
  cell <- r$cell
  in_cell <- function(m) tapply(m[use], factor(f$r$cell[use], strata$cell), sum)
  about <- ratio(in_cell(f$sides[[1]]), in_cell(inside))  # how many answers the figure is about at all
  at <- c(as.numeric(f$sides[[1]][use]), ifelse(is.na(about[lost$cell]), 0, about[lost$cell]) * lost$inside)
  value <- c(f$y[use], rep(0, nrow(lost)))
  w <- ifelse(unequal[r$part], 1 / r$chance, 1)
  total <- function(x) sums(w * x, cell)
  given <- ifelse(answered, at, 0)
  missing <- ifelse(answered, 0, at)
  everything <- total(1)
  answers <- total(given)
  mean <- ratio(total(given * value), answers)
  if (is.null(end)) missing <- ifelse(answers > 0, missing, 0)
  gone <- total(missing)
  far <- if (is.null(end)) mean else ifelse(answers == 0 | is.infinite(odds), end, mean)
  tilt <- rep(1, nrow(r))
  if (is.finite(odds)) for (h in unique(cell[gone > 0 & answers > 0])) {  # values beyond a cut count `odds` times
    i <- which(cell == h & given > 0)
    i <- i[order(-sign * value[i])]
    s <- cumsum(w[i] * value[i])
    k <- cumsum(w[i])
    n <- length(i)
    means <- c(((odds - 1) * s + s[n]) / ((odds - 1) * k + k[n]), s[n] / k[n])
    best <- which.max(sign * means)
    far[cell == h] <- means[best]
    if (best <= n) tilt[i[seq_len(best)]] <- odds
  }
  middle <- ratio(answers * mean + gone * far, answers + gone)
  all <- tapply(strata$candidates, strata$part, sum)
  N <- r$candidates / all[r$part]
  P <- f$P[r$part]
  first <- !duplicated(cell)
  inner <- P * N * ratio(answers + gone, everything)
  size <- sum(inner[first])
  v <- sum((inner * middle)[first]) / size
  both <- given + missing
  own <- both * (middle - v) + given * (value - mean) + (missing - both * ratio(gone, answers + gone)) * (far - mean)
  if (is.finite(odds)) {
    normal <- ratio(total(given * tilt), answers)
    own <- own + ratio(gone, answers) * given * tilt * (value - far) / ifelse(normal > 0, normal, 1)
  }
  e <- P * w * (own - total(own) / everything) * N / everything / size
  parts <- sapply(unique(r$part), function(p) {
    i <- r$part == p
    counted <- i & answered & at > 0
    variance <- clustered(e[i], r$who[i])
    fewest <- length(unique(r$who[counted]))
    if (any(r$several[i] == 1)) {
      item <- ifelse(answered, r$item, seq_len(nrow(r)))[i]
      variance <- crossed(variance, clustered(e[i], item), clustered(e[i], paste(r$who[i], item)))
      fewest <- min(fewest, length(unique(r$item[counted])))
    }
    U <- r$universe[i][1]
    if (!is.na(U) && U > all[p]) {
      h <- i & first
      by_cell <- (total(both * (middle - v)) / everything / size)[h]
      spread <- sum(N[h] * (by_cell - sum(N[h] * by_cell))^2)
      variance <- variance + f$P[p]^2 * (1 / all[p] - 1 / U) * spread
    }
    c(variance, max(fewest - 1, 1), length(unique(r$who[counted])))
  })
  each <- w * ratio(r$candidates, total(as.numeric(answered)))
  relative <- (P * each / sums(each * answered, r$part))[answered & at > 0]
  e <- result(v, sum(parts[1, ]), satterthwaite(parts[1, ], parts[2, ]), kish(relative), f$share, sum(parts[3, ]))
  c(e, lost = sum(at[!answered]))
}
reaching <- function(e, plain) {
  e$ends <- if (known(e) && known(plain)) c(min(e$ends[1], plain$ends[1]), max(e$ends[2], plain$ends[2])) else c(NA, NA)
  e
}
bounds_of <- function(f, lost, inside, plain, odds) {
  if (!known(plain) || is.infinite(odds) && anyNA(f$span)) return(NULL)
  linear <- extreme(f, lost, inside, 1, 1, NULL)$se
  times <- if (linear > 0 && plain$se > linear) plain$se / linear else 1  # as the floor makes the plain error larger
  lapply(1:2, function(k) {
    e <- extreme(f, lost, inside, c(-1, 1)[k], odds, if (!anyNA(f$span)) f$span[k])
    reaching(with_error(e, times * e$se, if (times > 1) plain$df else min(e$df, plain$df)), plain)
  })
}

# The lower and the upper end of a figure's bounds; of a difference from the bounds of its sides.
ends_of <- function(f, lost, odds) {
  if (f$kind == "ratio") return(NULL)
  side <- function(s) {
    at <- f$parts_of(lost)[[s]]
    lost$inside <- if (f$level) rep(1, nrow(lost)) else as.numeric(at)
    if (f$level) lost <- lost[at, ]
    if (length(f$sides) == 1) return(bounds_of(f, lost, f$inside[[1]], f$all, odds))
    i <- if (f$level) f$inside[[s]] else rep(TRUE, nrow(f$r))
    f[c("r", "y", "x", "sides", "share")] <- list(f$r[i, ], f$y[i], f$x[i], list(f$sides[[s]][i]), f$kind == "share")
    bounds_of(f, lost, f$inside[[s]][i], together(f, f$P), odds)
  }
  ends <- lapply(seq_along(f$sides), side)
  if (any(sapply(ends, is.null)) || sum(sapply(ends, function(b) round(b[[1]]$lost))) == 0) return(NULL)
  if (length(ends) == 1) return(ends[[1]])
  same <- any(f$r$who[f$sides[[1]]] %in% f$r$who[f$sides[[2]]])
  list(reaching(less(ends[[2]][[1]], ends[[1]][[2]], same), f$all),
       reaching(less(ends[[2]][[2]], ends[[1]][[1]], same), f$all))
}

# Intervals that hold at any time, and changes within people

at_any_time <- function(e, rho) {
  if (!known(e) || e$se <= 0) return(NULL)
  k <- e$people * rho^2
  reach <- sqrt((1 + 1 / k) * 2 * log(sqrt(k + 1) / 0.05)) * e$se
  logit <- e$share && e$value > 0 && e$value < 1
  ends <- e$value + c(-1, 1) * reach
  if (logit) ends <- plogis(qlogis(e$value) + c(-1, 1) * reach / (e$value * (1 - e$value)))
  list(value = e$value, se = e$se, ends = ends, people = e$people)
}
sampled_minus_holdout <- function(f) {
  stages <- unique(sub(" .*", "", names(f$stages)))
  adaptive <- sapply(paste(stages, "sampled"), function(p) sum(strata$part == p) > 1 || isTRUE(unequal[p][[1]]))
  holdout <- paste(stages, "holdout")[adaptive & paste(stages, "holdout") %in% names(f$stages)]
  both <- lapply(holdout, function(p) {
    sampled <- f$stages[[sub("holdout", "sampled", p)]]
    if (!is.null(sampled) && !is.null(f$stages[[p]])) less(sampled, f$stages[[p]])
  })
  there <- sapply(both, known)
  if (any(there)) combine(both[there], information[holdout][there])
}
majority_of <- function(row) {
  own <- majorities[majorities$stage == row$stage & (row$label == "all" | majorities$stratum %in% row$label), ]
  y <- as.numeric(own$label[!is.na(own$label)])
  n <- length(y)
  if (n < 2) return(NULL)
  e <- result(mean(y), mean((y - mean(y))^2) / (n - 1), n - 1, n, TRUE, n)
  list(value = e$value, ends = e$ends)
}
both_ends <- function(ends) {
  if (is.null(ends)) return(NULL)
  list(ends = c(ends[[1]]$ends[1], ends[[2]]$ends[2]), lowest = ends[[1]]$value, highest = ends[[2]]$value)
}
cut_to <- function(ends, row, f) {  # to what the figure can be
  if (is.null(ends)) return(c(NA, NA))
  span <- if (is.null(f)) c(NA, NA) else f$span
  is_difference <- length(f$sides) == 2 || row$kind %in% c("sampled - holdout", "change within person")
  if (is_difference) span <- diff(span) * c(-1, 1)
  if (grepl("^wave .*: ", row$label)) span <- 2 * span
  c(max(ends[1], span[1], na.rm = !is.na(ends[1])), min(ends[2], span[2], na.rm = !is.na(ends[2])))
}

# The change within people who answered in two waves: of all, at one level, or at the second level minus the first.
change_of_row <- function(row, f) {
  wave <- as.numeric(sub("^wave ([0-9]+).*", "\\1", row$label))
  rows <- design[design$state == "answered" & design$wave %in% c(wave - 1, wave), ]
  joint <- all(sapply(unique(rows$part), weighs, r = rows))
  rows$w <- if (joint) information[rows$part] * weights_of(rows) else 1
  rows$y <- rows[[row$figure]]
  rows$x <- if (f$kind == "ratio") rows[[paste0(row$figure, "__per")]] else 1
  rows <- rows[!is.na(rows$y), ]
  at <- function(factor, level) {
    own <- if (is.null(factor)) rows else rows[rows[[paste0("level__", factor)]] %in% level, ]
    totals_of(own[own$wave == wave - 1, ], own[own$wave == wave, ])
  }
  under <- sub("^wave [0-9]+ - wave [0-9]+(, )?", "", row$label)
  if (under == "") return(change_of(at(NULL)))
  factor <- sub("(=|: ).*", "", under)
  rest <- substring(under, nchar(factor) + 2)
  if (!grepl(": ", under)) return(change_of(at(factor, rest)))
  levels <- sort(unique(rows[[paste0("level__", factor)]]), method = "radix")
  change_difference(at(factor, levels[1]), at(factor, levels[2]))
}
totals_of <- function(first, second) {  # each of: y, x, w, respondent
  both <- intersect(first$respondent, second$respondent)
  one <- lapply(list(first, second), function(o) {
    o <- o[o$respondent %in% both, ]
    above <- rowsum(o$w * o$y, o$respondent)[both, 1]
    below <- rowsum(o$w * o$x, o$respondent)[both, 1]
    mean <- sum(above) / sum(below)
    list(mean = mean, d = (above - mean * below) / sum(below), w = o$w / base::mean(o$w))
  })
  d <- setNames(one[[2]]$d - one[[1]]$d, both)
  list(value = one[[2]]$mean - one[[1]]$mean, d = d, w = c(one[[1]]$w, one[[2]]$w))
}
change_of <- function(t) {
  n <- length(t$d)
  result(t$value, if (n > 1) clustered(t$d, seq_len(n)) else NA, max(n - 1, 1), kish(t$w), FALSE, n)
}
change_difference <- function(low, high) {
  people <- union(names(low$d), names(high$d))
  d <- setNames(numeric(length(people)), people)
  d[names(high$d)] <- high$d
  d[names(low$d)] <- d[names(low$d)] - low$d
  v <- c(clustered(low$d, names(low$d)), clustered(high$d, names(high$d)))
  apart <- length(people) == length(low$d) + length(high$d)
  result(high$value - low$value, if (apart) sum(v) else clustered(d, people),
         if (apart) satterthwaite(v, c(length(low$d), length(high$d)) - 1) else length(people) - 1,
         kish(c(low$w, high$w)), FALSE, length(people))
}

# What a row of estimates.csv should say: the figure `f` itself, or what stands next to it.
of_row <- function(row, f) {
  part <- paste(row$stage, row$role)
  if (endsWith(row$kind, ", one stage")) {
    return(c(f$stages[[part]], list(weight = if (part %in% names(f$P)) f$P[[part]] else 0)))
  }
  left <- unanswered[unanswered$state == "unanswered", ]
  switch(row$kind,
    naive = naive_of(f),
    `such questions` = such_of(f$all, errors_of(f)),
    `weighted for leaving` = if (length(f$sides) == 1) widen(stayed_of(f), errors_of(f, stay = TRUE)) else stayed_of(f),
    bounds = both_ends(ends_of(f, left, f$odds)),
    `bounds with excluded` = both_ends(ends_of(f, unanswered, f$odds)),
    `worst case` = both_ends(ends_of(f, left, Inf)),
    majority = majority_of(row),
    `sampled - holdout` = sampled_minus_holdout(f),
    `change within person` = change_of_row(row, f),
    `at any time` = at_any_time(f$stages[[part]], design$rho[design$part == part][1]),
    c(f$all, list(agree = if (row$kind != "first items") agreement(f$stages))))
}

# Rows that estimates.csv must have whatever the answers are: of every figure, over everything and in each part of each
# division that is there at all, that of all stages together and that of each stage.
missing_of <- function(stated) {
  named <- function(figure, division, label, kind, part) paste(figure, division, label, kind, part, sep = " | ")
  blank <- function(x) ifelse(is.na(x), "", x)
  there <- named(stated$figure, blank(stated$division), blank(stated$label), stated$kind,
                 ifelse(endsWith(stated$kind, ", one stage"), paste(stated$stage, stated$role), ""))
  of <- function(figures, division, label, kind) {
    each <- expand.grid(figure = figures, part = c("", unique(answers$part)), stringsAsFactors = FALSE)
    kinds <- ifelse(each$part == "", kind, paste0(kind, ", one stage"))
    if (nrow(each)) named(each$figure, division, label, kinds, each$part)
  }
  measures <- about$figure[about$kind != "check"]
  expected <- c(of(measures, "", "", "combined"), of(about$figure[about$kind == "check"], "", "", "check"))
  for (column in grep("^(level|by)__", names(design), value = TRUE)) {
    name <- sub("^(level|by)__", "", column)
    divided <- stated$division[stated$kind == "combined"]
    if (startsWith(column, "level__") && !name %in% divided) next  # a factor that nothing was divided by
    for (label in unique(na.omit(answers[[column]])))
      if (!label %in% stated$label[stated$kind == "withheld" & stated$division %in% name])
        expected <- c(expected, of(measures, name, label, "combined"))
  }
  setdiff(expected, there)
}
