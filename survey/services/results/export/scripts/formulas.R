# The formulas of codebook.md as functions of base R, written for check.R without a line of Hunch's own code.
# `r`: a list of columns of design.csv for some answers, with `part` (a stage's role), `cell` (a stratum of a part),
# `who` (a person in a stage), `item` and questions as whole numbers.
# `y`, `x`: the values whose ratio the figure is. `sides`: which answers it is about; of a difference, first what is
# taken off. `P`: the parts' weights. `taken`: what predictions took off `y`.

take <- function(r, rows) lapply(r, `[`, rows)
kish <- function(w) sum(w)^2 / sum(w^2)
by_group <- function(x, by) c(rowsum(x, by, reorder = FALSE))  # in the order of unique(by)
sums <- function(x, by) by_group(x, by)[match(by, unique(by))]
per_cell <- function(x, cell) replace(numeric(nrow(strata)), unique(cell), by_group(x, cell))  # of all strata
ratio <- function(a, b) ifelse(b > 0, a / b, 0)
more_than_one <- function(n) n / pmax(n - 1, 1)
clustered <- function(x, by) {
  totals <- by_group(x, by)
  n <- length(totals)
  if (n < 2) NA else n / (n - 1) * sum(totals^2)
}
crossed <- function(one, other, both) max(one + other - both, min(one, other))
satterthwaite <- function(v, f) if (sum(v) > 0) sum(v)^2 / sum(v^2 / f) else sum(f)

# Weights that sum to 1 in each part: N_h / r_h, or 1 / chance; over the chance of staying with `stay`.
weights_of <- function(r, under = 1, stay = FALSE) {
  own <- unequal[r$part]
  w <- under / (if (stay) r$staying else 1) * rep(1, length(own))
  w[own] <- (w / r$chance)[own]
  w[!own] <- (w * r$candidates / sums(w, r$cell))[!own]
  w / sums(w, r$part)
}

# A plan's information: its slots over the design effects of unequal chances and of several answers a person.
information_of <- function(p) {
  own <- strata$part == p
  N <- strata$candidates[own]
  n <- slots[own]
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
  if (share) value <- min(1, max(0, value))  # assisted ones may lie beyond
  se <- sqrt(variance)
  if (!is.na(se) && se <= 1e-12 * max(1, abs(value))) se <- 0
  list(value = value, se = se, df = df, size = size, share = share, people = people, linear = linear,
       ends = interval(value, se, df, if (is.na(se) || se > 0) size else size * alike, share))
}
with_error <- function(e, se, df) {
  e[c("se", "df", "ends")] <- list(se, df, interval(e$value, se, df, e$size, e$share))
  e
}
known <- function(e) !is.null(e) && !anyNA(e$ends)

# The least variance ("floor"): the spread of single answers over the effective size.
spread_of <- function(distance, relative, stretch, lost) {
  k <- 1 / sum(relative^2)
  if (length(distance) <= lost) return(0)
  (k^2 * sum(relative^2 * distance^2 * stretch) + 10 * sum(distance^2) / (length(distance) - lost)) / (k + 10)
}
floor_of <- function(r, W, errors, sides, by_class) {
  n <- sums(rep(1, length(r$cell)), r$cell)
  of <- lapply(seq_along(sides), function(s) {
    m <- sides[[s]]
    relative <- W[[s]][m] / sum(W[[s]][m])
    own <- list(distance = errors[[s]][m] / relative, relative = relative, stretch = more_than_one(n)[m],
                lost = max(1, sum(1 / n[m])))
    if (by_class) {  # from answers of about the same weight, in five classes
      class <- findInterval(relative, quantile(relative, 1:4 / 5), left.open = TRUE)
      size <- sums(rep(1, sum(m)), class)
      own$distance <- own$distance - sums(own$distance, class) / size
      own$stretch <- more_than_one(size)
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
  inside_people <- distance - sums(distance, who) / sums(rep(1, n), who)  # what people bring to both sides cancels out
  sum(shrink) * spread_of(inside_people, unlist(lapply(of, `[[`, "relative")) / 2, n / (n - people), people)
}

# The variance by respondent and by item of one part; with `corrected` less the part of the items that was drawn.
by_item <- function(r, e, by_person, corrected) {
  first <- !duplicated(r$item)
  cell <- r$cell[first]
  total <- by_group(e, r$item)
  squares <- by_group(e^2, r$item)
  k <- by_group(rep(1, length(e)), r$item)
  in_cell <- function(x) by_group(x, cell)
  count <- in_cell(rep(1, length(cell)))
  both <- more_than_one(in_cell(k)) * in_cell(squares)
  products <- more_than_one(count) * in_cell(total^2) - both
  if (!corrected) return(crossed(by_person, sum(products + both), sum(both)))
  products <- pmax(products, 0)
  pool <- if (is.na(r$universe[1])) 1 else sum(strata$candidates[strata$part == r$part[1]]) / r$universe[1]
  f <- pmin(pool * count / strata$candidates[unique(cell)], 1)
  between <- ratio(products * in_cell(k^2), in_cell(k * (k - 1)))
  inside <- ifelse(k > 1, (squares - total^2 / k) * more_than_one(k), 0)
  max(by_person + sum(products - f * between), sum(inside) + sum((1 - f) * between))
}

# What a pool of candidates adds to the variance of one part: the spread between its strata and, where predictions took
# something off, theirs.
first_phase_of <- function(r, w, x, middle, taken, unequal) {
  if (is.na(r$universe[1]) || unequal && is.null(taken)) return(0)
  h <- !duplicated(r$cell)
  N <- r$candidates[h]
  spread <- if (unequal) 0 else weighted.mean(middle[h]^2, N) - weighted.mean(middle[h], N)^2
  if (!is.null(taken)) {
    mean <- sum(w * taken) / sum(w * x)
    adjusted <- if (unequal) taken / sum(w * x) else (taken - mean * x) / sum(w * x) + mean
    spread <- spread + sum(w * adjusted^2)
  }
  (1 / sum(N) - 1 / r$universe[1]) * spread
}

# The figure of one part (`single`), or of several put together before they are divided.
# `under`: the levels of a difference between levels, each weighted by its own answers.
estimate <- function(r, y, x, sides, P, share, stay = FALSE, under = NULL, single = FALSE, taken = NULL) {
  W <- lapply(seq_along(sides), function(s) P[r$part] * weights_of(r, if (is.null(under)) 1 else under[[s]], stay))
  below <- mapply(function(w, m) sum((w * x)[m]), W, sides)
  means <- mapply(function(w, m) sum((w * y)[m]), W, sides) / below
  residual <- lapply(seq_along(sides), function(s) sides[[s]] * (y - means[s] * x) / below[s])
  centre <- mapply(function(w, u) sums(w * u, r$cell) / sums(w, r$cell), W, residual, SIMPLIFY = FALSE)
  errors <- mapply(function(w, u, m) w * (u - m), W, residual, centre, SIMPLIFY = FALSE)
  minus <- function(both) if (length(both) == 2) both[[2]] - both[[1]] else both[[1]]
  e <- minus(errors)
  middle <- minus(centre)
  inside <- Reduce(`|`, sides)
  weight <- if (is.null(under)) W[[1]] else W[[1]] + W[[2]]
  used <- unique(r$part[inside])
  v <- f <- first_phase <- linear <- numeric(length(used))
  alike <- 1
  repeats <- FALSE
  for (k in seq_along(used)) {
    p <- used[k]
    i <- r$part == p
    o <- i & inside
    several <- r$several[i][1] == 1
    people <- length(unique(r$who[o]))
    items <- if (several) length(unique(r$item[o])) else Inf
    f[k] <- max(min(people, items) - 1, 1)
    v[k] <- linear[k] <- clustered(e[i], r$who[i])
    if (single && min(people, items) < 2 || is.na(v[k])) return(NULL)
    groups <- lapply(sides, function(m) unique(r$who[m]))
    apart <- sum(lengths(groups)) == length(unique(r$who[i])) && !any(groups[[1]] %in% groups[[length(groups)]])
    if (single && length(sides) == 2 && (!is.null(under) || unequal[p]) && apart && min(lengths(groups)) > 1) {
      own <- sapply(groups, function(g) clustered(e[r$who %in% g], r$who[r$who %in% g]))  # different people
      v[k] <- sum(own)
      f[k] <- min(f[k], satterthwaite(own, lengths(groups) - 1))
      # Each side by n / (n - 1) of its own people, in the variance by item too.
      for (g in groups) e[r$who %in% g] <- e[r$who %in% g] * sqrt(more_than_one(length(g)) / more_than_one(people))
    }
    if (several) {
      v[k] <- by_item(take(r, i), e[i], v[k], corrected = is.null(under) && !unequal[p])
      repeats <- repeats || (if (single) items < sum(o) else anyDuplicated(r$item[i]) > 0)
      if (single) alike <- items / sum(o)
    }
    if (unequal[p] && diff(range(weight[o])) > 0) {
      f[k] <- min(f[k], max(kish(by_group(weight[o]^2, r$who[o])) - 1, 1))
    }
    pool <- take(r[c("cell", "candidates", "universe")], i)
    first_phase[k] <- P[p]^2 * first_phase_of(pool, W[[1]][i], x[i], middle[i], taken[i], unequal[p])
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
  n <- tabulate(r$cell, nrow(strata))[strata$part == p]
  information[p] == 0 || any(n == 0) || length(n) > 1 && any(n == 1)
}
has_gap <- function(r, m, p) {  # among n answers none may be of what makes up to 3 / n of the stratum
  own <- strata$part == p
  if (sum(own) == 1) return(FALSE)
  N <- strata$candidates[own]
  n <- tabulate(r$cell, nrow(strata))[own]
  k <- tabulate(r$cell[m], nrow(strata))[own]
  unseen <- N * pmin(1, 3 / n)
  any(k == 0 & unseen > 0.03 * (sum(N * k / n) + unseen))
}
weighs <- function(r, p) {
  r <- take(r, r$part == p)
  !has_obstacle(r, p) && length(unique(r$who)) > 1 && (r$several[1] == 0 || length(unique(r$item)) > 1) &&
    kish(weights_of(r)) >= 2
}
of_part <- function(f, p, stay = FALSE) {
  i <- f$r$part == p
  r <- take(f$r, i)
  sides <- lapply(f$sides, `[`, i)
  under <- if (!is.null(f$under)) lapply(f$under, `[`, i)
  levels <- if (is.null(under)) list(rep(TRUE, sum(i))) else under
  if (any(sapply(levels, function(u) has_obstacle(take(r, u), p))) || stay && anyNA(r$staying)) return(NULL)
  if (any(sapply(sides, function(m) sum(f$x[i][m]) <= 0 || has_gap(r, m, p)))) return(NULL)
  e <- estimate(r, f$y[i], f$x[i], sides, replace(numeric(length(parts)), p, 1), f$share, stay, if (!unequal[p]) under,
                single = TRUE, taken = f$taken[i])
  if (is.null(e) || e$size < 2) NULL else e
}
together <- function(f, P, stay = FALSE) {
  i <- P[f$r$part] > 0
  if (!any(Reduce(`|`, f$sides)[i])) return(NULL)
  e <- estimate(take(f$r, i), f$y[i], f$x[i], lapply(f$sides, `[`, i), P / sum(P), f$share, stay)
  if (is.null(e) || e$size < 2 || e$people < 2) NULL else e
}
with_stages <- function(f) {
  f$all <- NULL
  own <- unique(f$r$part)
  f$stages <- vector("list", length(parts))
  f$stages[own] <- lapply(own, of_part, f = f)
  P <- information * !sapply(f$stages, is.null)
  joint <- if (f$pooled) replace(numeric(length(parts)), own, information[own] * sapply(own, weighs, r = f$r))
  if (any(P > 0) && f$pooled && sum(joint > 0) > 1) {
    P <- joint
    f$all <- together(f, P)
  } else if (any(P > 0)) f$all <- combine(f$stages[P > 0], P[P > 0])
  f$P <- if (is.null(f$all)) 0 * P else P / sum(P)
  f
}
stayed_of <- function(f) {
  if (is.null(f$all) || anyNA(f$r$staying[f$P[f$r$part] > 0])) return(NULL)
  if (f$pooled && sum(f$P > 0) > 1) return(together(f, f$P, stay = TRUE))
  own <- lapply(which(f$P > 0), of_part, f = f, stay = TRUE)
  if (!any(sapply(own, is.null))) combine(own, f$P[f$P > 0])
}
naive_of <- function(f) {
  m <- f$sides[[1]]
  if (sum(f$x[m]) <= 0) return(NULL)
  value <- sum(f$y[m]) / sum(f$x[m])
  who <- f$r$respondent[m]
  e <- (f$y[m] - value * f$x[m]) / sum(f$x[m])
  n <- length(e)
  people <- length(unique(who))
  if (people < 2) return(list(value = value, se = NA, df = 0, ends = c(NA, NA), size = n, people = people))
  least <- spread_of(e * n, rep(1 / n, n), n / (n - 1), 1) / n
  result(value, max(clustered(e, who), least), people - 1, n, f$share, people)
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

# The help of predictions: each answer's coefficient is fitted without its person's answers and those to its item, and
# shrunk to 0; in strata so is its difference to the coefficient of all.

coefficients_of <- function(r, y, x, predicted) {  # NULL where predictions do not help
  n <- length(y)
  if (length(unique(r$who)) < 10 || !any(predicted != 0)) return(NULL)
  w <- weights_of(r)
  centred <- function(z) z - sums(w * z, r$cell) / sums(w, r$cell)
  error <- centred(y - sum(w * y) / sum(w * x) * x)
  item <- if (r$several[1] == 1) r$item else seq_len(n)
  both <- as.numeric(r$who) * (max(item) + 1) + item
  part <- w * sums(w, item)
  about <- centred(predicted)
  fit <- function(rows, base, known) {
    z <- ifelse(rows, about, 0)
    pull <- part * z
    of_others <- function(v) sum(v) - sums(v, r$who) - sums(v, item) + sums(v, both)
    whole <- sum(pull * z)
    if (whole <= 0) return(list(raw = rep(0, n), shrunk = rep(0, n)))
    others <- of_others(pull * z)
    slope <- ifelse(others > 1e-6 * whole, of_others(pull * error) / others - base, 0)
    others <- ifelse(others > 1e-6 * whole, others, 1)
    off <- error - z * sum(pull * error) / whole
    own <- pull * off / whole
    spread <- weighted.mean(off[pull != 0]^2, part[pull != 0])
    variance <- max(clustered(own, r$who), sum(own^2), spread * sum(pull^2) / whole^2)
    clear <- slope^2 / pmax((1 - known) * variance * whole / others, 1e-300)
    list(raw = slope, shrunk = slope * pmax(1 - 2 / pmax(clear, 1e-300), 0))
  }
  all <- fit(rep(TRUE, n), 0, 0)
  coefficient <- all$shrunk
  if (sum(strata$part == r$part[1]) > 1) for (h in unique(r$cell)) {
    own <- r$cell == h
    share <- sum((part * about^2)[own]) / max(sum(part * about^2), 1e-300)
    coefficient[own] <- coefficient[own] + fit(own, all$raw, share)$shrunk[own]
  }
  if (any(coefficient * predicted != 0)) coefficient
}
assisted_of <- function(f) {
  f$coefficient <- rep(NA, length(parts))
  predicted <- f$r$prediction - f$r$prediction_mean
  predicted[is.na(predicted)] <- 0
  highest <- function(x, by) unname(tapply(x, by, max)[as.character(by)])
  size <- highest(abs(ifelse(is.na(f$r$prediction), 0, f$r$prediction)), f$r$part)
  predicted[abs(predicted) <= 1e-9 * size] <- 0  # equal but for rounding
  taken <- numeric(length(predicted))
  levels <- if (is.null(f$under)) list(rep(TRUE, length(taken))) else f$under
  for (p in which(!sapply(f$stages, is.null))) {
    own <- lapply(levels, function(m) {
      i <- which(m & f$r$part == p)
      b <- coefficients_of(take(f$r, i), f$y[i], f$x[i], predicted[i])
      if (!is.null(b)) list(i = i, b = b, mean = weighted.mean(b, weights_of(take(f$r, i))))
    })
    for (o in own) if (!is.null(o)) taken[o$i] <- o$b * predicted[o$i]
    if (!all(sapply(own, is.null))) f$coefficient[p] <- sum(sapply(own, function(o) if (is.null(o)) 0 else o$mean)) /
      length(own)
  }
  f$y <- f$y - taken
  if (is.null(f$under)) f$taken <- taken
  with_stages(f)
}

# People weighted to a population, by the package survey; weights above the limit are cut in turn with the raking.

weights_of_people <- function() {
  columns <- unique(margins$margin)
  people <- answers[!duplicated(answers$respondent), c("respondent", columns)]
  people <- people[complete.cases(people), ]
  n <- nrow(people)
  targets <- lapply(columns, function(m) {
    own <- margins[margins$margin == m, ]
    setNames(data.frame(own$group, as.numeric(own$share) * n), c(m, "Freq"))
  })
  is_empty <- function(target) any(!target[[1]] %in% people[[names(target)[1]]])
  if (!n || any(sapply(targets, is_empty))) return(NULL)
  formulas <- lapply(columns, function(m) reformulate(sprintf("`%s`", m)))
  start <- svydesign(ids = ~1, weights = rep(1, n), data = people)
  made <- if (length(columns) == 1) postStratify(start, formulas[[1]], targets[[1]]) else
    suppressWarnings(rake(start, formulas, targets, control = list(maxit = 1000, epsilon = 1e-12)))
  w <- weights(made)
  furthest <- function(target) max(abs(tapply(w, people[[names(target)[1]]], sum)[target[[1]]] - target$Freq)) / n
  if (max(sapply(targets, furthest)) > 1e-6) return(NULL)  # no weights give all margins their shares
  limit <- as.numeric(margins$trim[1])
  if (max(w) > limit) for (k in 1:1000) {
    before <- w
    for (target in targets) {
      own <- people[[names(target)[1]]]
      w <- w * setNames(target$Freq, target[[1]])[own] / sums(w, own)
    }
    while (any(w > limit * (1 + 1e-10))) {  # what is above goes to all others in proportion
      low <- w < limit
      w <- ifelse(low, w * (n - limit * sum(!low)) / sum(w[low]), limit)
    }
    if (max(abs(w - before)) <= 1e-10 * max(w, 1)) break
  }
  setNames(w, people$respondent)
}
weighted_to_population <- function(f) {
  if (is.null(of_people) || is.null(f$all)) return(NULL)
  w <- of_people[as.character(f$r$respondent)]
  i <- !is.na(w) & f$P[f$r$part] > 0
  r <- take(f$r, i)
  r$staying <- as.vector(min(w[i]) / w[i])  # an answer counts for 1 / staying, as a person does here
  used <- which(f$P > 0)
  if (!all(used %in% r$part) || any(sapply(used, function(p) has_obstacle(take(r, r$part == p), p)))) return(NULL)
  weight <- weights_of(r, stay = TRUE)
  x <- f$x[i] * f$sides[[1]][i]
  y <- f$y[i] * f$sides[[1]][i]
  below <- sums(weight * x, r$part)
  if (any(below <= 0)) return(NULL)
  value <- sums(weight * y, r$part) / below
  groups <- answers[match(r$respondent, answers$respondent), unique(margins$margin), drop = FALSE]
  fitted <- lm.wfit(model.matrix(~ ., groups), (y - value * x) / below, f$P[r$part] * weights_of(r))
  rest <- fitted$residuals  # what the margins do not explain
  around <- value + rest - sums(weight * rest, r$part)
  all <- list(rep(TRUE, length(around)))
  own <- list(r = r, y = around, x = rep(1, length(around)), sides = all, share = FALSE)
  each <- lapply(used, of_part, f = own, stay = TRUE)
  if (!any(sapply(each, is.null))) combine(each, f$P[used])
}

# A few answers decide, people who weigh much, questions like these

errors_of <- function(f, stay = FALSE) {  # around each part's mean
  W <- f$P[f$r$part] * weights_of(f$r, stay = stay)
  m <- which(f$sides[[1]] & W > 0)
  r <- take(f$r, m)
  w <- W[m]
  mean <- sums(w * f$y[m], r$part) / sums(w * f$x[m], r$part)
  below <- sum(w * f$x[m])
  used <- f$x[m] != 0
  list(r = take(r, used), e = (w * (f$y[m] - mean * f$x[m]) / below)[used], share = (w * f$x[m] / below)[used])
}
widen <- function(e, errors) {
  if (!known(e) || e$se <= 0) return(e)
  d <- by_group(errors$e, errors$r$who)
  h <- by_group(errors$share, errors$r$who)
  if (length(d) < 2 || sum(d^2) <= 0) return(e)
  excess <- sum(d^4) - sum(d^2)^2 / length(d)
  df <- if (excess > 0) max(2 * sum(d^2)^2 / excess, 3) else Inf
  with_error(e, e$se * sqrt(sum((d / (1 - h))^2) / sum(d^2)), min(e$df, df))
}
such_of <- function(e, errors) {
  if (!known(e) || anyNA(errors$r$question_1)) return(NULL)
  r <- errors$r
  two <- which(!is.na(r$question_2) & r$question_2 != r$question_1)
  n <- length(r$who)
  row <- c(seq_len(n), two)
  question <- c(r$question_1, r$question_2[two])
  of_both <- function(one, other) one * (max(other, 0) + 1) + other  # a number for each two, as numbers go fast
  pair <- of_both(as.numeric(pmin(r$question_1, r$question_2)[two]), pmax(r$question_1, r$question_2)[two])
  item <- if (any(r$several == 1)) ifelse(r$several == 1, of_both(as.numeric(r$part), r$item), -seq_len(n))
  if (length(unique(question)) < 2) return(NULL)
  squares <- function(x, by) if (length(x)) sum(by_group(x, by)^2) else 0
  others <- function(x, by, who) squares(x, by) - squares(x, of_both(by, who))
  shared <- function(x) {
    of_items <- if (is.null(item)) 0 else others(x, item, r$who)
    others(x[row], question, r$who[row]) - others(x[two], pair, r$who[two]) - of_items
  }
  missing <- min(max(shared(errors$share), 0), 0.5)
  added <- max((shared(errors$e) + missing * e$se^2) / (1 - missing), 0)
  effective <- kish(by_group(errors$share[row], question)^2)
  with_error(e, sqrt(e$se^2 + added), min(e$df, max(effective - 1, 1)))
}

# Bounds. `lost`: items without an answer, with `inside`: whether they are in the division. `inside`: which answers are.

extreme <- function(f, lost, inside, sign, odds, end) {
  use <- f$P[f$r$part] > 0
  lost <- take(lost, f$P[lost$part] > 0)
  both <- function(name) c(f$r[[name]][use], lost[[name]])
  r <- sapply(c("part", "cell", "who", "item", "several", "candidates", "universe", "chance"), both, simplify = FALSE)
  cell <- r$cell
  answered <- seq_along(cell) <= sum(use)
  in_cell <- function(m) per_cell(as.numeric(m[use]), f$r$cell[use])
  about <- ratio(in_cell(f$sides[[1]]), in_cell(inside))  # how many answers the figure is about at all
  at <- c(as.numeric(f$sides[[1]][use]), about[lost$cell] * lost$inside)
  value <- c(f$y[use], rep(0, length(lost$cell)))
  w <- ifelse(unequal[r$part], 1 / r$chance, 1)
  cells <- unique(cell)
  total <- function(x) replace(numeric(nrow(strata)), cells, by_group(w * x, cell))  # of strata, as all that follows
  given <- ifelse(answered, at, 0)
  missing <- ifelse(answered, 0, at)
  everything <- total(1)
  answers <- total(given)
  mean <- ratio(total(given * value), answers)
  gone <- total(missing)
  if (is.null(end)) {
    gone <- ifelse(answers > 0, gone, 0)
    missing <- ifelse(answers[cell] > 0, missing, 0)
  }
  far <- if (is.null(end)) mean else ifelse(answers == 0 | is.infinite(odds), end, mean)
  tilt <- rep(1, length(cell))
  if (is.finite(odds)) for (h in which(gone > 0 & answers > 0)) {  # values beyond a cut count `odds` times
    i <- which(cell == h & given > 0)
    i <- i[order(-sign * value[i])]
    s <- cumsum(w[i] * value[i])
    k <- cumsum(w[i])
    n <- length(i)
    means <- c(((odds - 1) * s + s[n]) / ((odds - 1) * k + k[n]), s[n] / k[n])
    best <- which.max(sign * means)
    far[h] <- means[best]
    if (best <= n) tilt[i[seq_len(best)]] <- odds
  }
  middle <- ratio(answers * mean + gone * far, answers + gone)
  all <- by_group(strata$candidates, strata$part)
  N <- strata$candidates / all[strata$part]
  P <- f$P[strata$part] * (everything > 0)
  inner <- P * N * ratio(answers + gone, everything)
  size <- sum(inner)
  v <- sum(inner * middle) / size
  both <- given + missing
  own <- both * (middle[cell] - v) + given * (value - mean[cell])
  own <- own + (missing - both * ratio(gone, answers + gone)[cell]) * (far - mean)[cell]
  if (is.finite(odds)) {
    normal <- ratio(total(given * tilt), answers)[cell]
    own <- own + ratio(gone, answers)[cell] * given * tilt * (value - far[cell]) / ifelse(normal > 0, normal, 1)
  }
  e <- (P * N)[cell] * w * (own - ratio(total(own), everything)[cell]) / everything[cell] / size
  spread_over <- ratio(total(both * (middle[cell] - v)), everything) / size
  of_parts <- sapply(unique(r$part), function(p) {
    i <- r$part == p
    counted <- i & answered & at > 0
    variance <- clustered(e[i], r$who[i])
    fewest <- length(unique(r$who[counted]))
    if (any(r$several[i] == 1)) {
      item <- ifelse(answered, r$item, -seq_along(cell))[i]
      variance <- crossed(variance, clustered(e[i], item), clustered(e[i], paste(r$who[i], item)))
      fewest <- min(fewest, length(unique(r$item[counted])))
    }
    U <- r$universe[i][1]
    if (!is.na(U) && U > all[p]) {
      h <- which(strata$part == p & everything > 0)
      spread <- sum(N[h] * (spread_over[h] - sum(N[h] * spread_over[h]))^2)
      variance <- variance + f$P[p]^2 * (1 / all[p] - 1 / U) * spread
    }
    c(variance, max(fewest - 1, 1), length(unique(r$who[counted])))
  })
  each <- w * ratio(r$candidates, total(as.numeric(answered))[cell])
  relative <- (f$P[r$part] * each / sums(each * answered, r$part))[answered & at > 0]
  e <- result(v, sum(of_parts[1, ]), satterthwaite(of_parts[1, ], of_parts[2, ]), kish(relative), f$share,
              sum(of_parts[3, ]))
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
  if (f$kind == "ratio" || !length(lost$part)) return(NULL)
  side <- function(s) {
    at <- f$parts_of(lost)[[s]]
    lost <- if (f$level) take(lost, at) else lost
    lost$inside <- if (f$level) rep(1, sum(at)) else as.numeric(at)
    if (length(f$sides) == 1) return(bounds_of(f, lost, f$inside[[1]], f$all, odds))
    i <- if (f$level) f$inside[[s]] else rep(TRUE, length(f$y))
    f[c("r", "y", "x")] <- list(take(f$r, i), f$y[i], f$x[i])
    f[c("sides", "share")] <- list(list(f$sides[[s]][i]), f$kind == "share")
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
  holdout <- which(parts %in% paste(adaptive, "holdout") & !sapply(f$stages, is.null))
  both <- lapply(holdout, function(p) {
    sampled <- f$stages[[match(sub("holdout", "sampled", parts[p]), parts)]]
    if (!is.null(sampled)) less(sampled, f$stages[[p]])
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
    above <- by_group(o$w * o$y, o$respondent)[match(both, unique(o$respondent))]
    below <- by_group(o$w * o$x, o$respondent)[match(both, unique(o$respondent))]
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

# The figure that a row and those after it are about.
figure_of <- function(row) {
  column <- intersect(paste0(c("level__", "group__", "by__"), row$division), names(design))
  if (row$kind == "change within person") column <- NULL
  is_level <- length(column) && !startsWith(column, "by__")
  both <- if (length(column)) sort(unique(answers[[column]]), method = "radix")
  # Of a group of people, and of a level of three or more, it is the difference to the rest that is assisted.
  kind <- if (row$kind == "assisted difference" && row$label %in% both) "difference to the rest" else row$kind
  parts_of <- function(table) {  # whose rows are on which side
    label <- if (length(column)) table[[column]]
    switch(if (length(column)) kind else "everything", difference = , `assisted difference` = ,
           `at any time` = lapply(both, function(l) label %in% l),
           `difference to the rest` = list(!is.na(label) & label != row$label, label %in% row$label),
           everything = list(rep(TRUE, length(table$part))), list(label %in% row$label))
  }
  r <- if (row$kind == "at any time") design[design$state == "answered" & design$stage == row$stage, ] else answers
  if (row$kind == "first items") r <- r[which(r$position == 1), ]
  if (row$kind %in% c("combined", "assisted") && is_level) r <- r[parts_of(r)[[1]], ]
  info <- about[about$figure == row$figure, ]
  y <- r[[row$figure]]
  per <- r[[paste0(row$figure, "__per")]]
  f <- list(r = unclass(r[core]), y = ifelse(is.na(y), 0, y),
            x = if (is.null(per)) rep(1, nrow(r)) else ifelse(is.na(y), 0, per))
  side <- r[[paste0(row$figure, "__side")]]
  f$inside <- if (row$kind == "check") list(side %in% 1, side %in% 2) else parts_of(r)
  f$sides <- lapply(f$inside, function(m) m & !is.na(y))
  two <- length(f$sides) == 2
  if (is_level && two) f$under <- f$inside
  f <- c(f, list(kind = info$kind, span = c(info$lowest, info$highest), odds = info$odds_ratio, level = is_level,
                 share = info$kind == "share" && !two, parts_of = parts_of))
  f$pooled <- is.null(f$under) && (info$kind == "ratio" || info$is_part == 1 || length(column) && !is_level)
  f <- with_stages(f)
  if (row$kind %in% assisted) f <- assisted_of(f)
  is_mean <- info$kind == "mean" && !two && (row$kind == "first items" || length(column))
  if (is_mean && !is.null(f$all) && f$all$size >= 20) f$all <- widen(f$all, errors_of(f))
  f
}

own_group <- function(row) answers[[paste0("group__", row$division)]] %in% row$label

# What a row of estimates.csv should say: the figure `f` itself, or what stands next to it.
of_row <- function(row, f) {
  part <- match(paste(row$stage, row$role), parts)
  if (endsWith(row$kind, ", one stage"))
    return(c(f$stages[[part]], list(weight = f$P[part], coefficient = f$coefficient[part])))
  left <- unanswered[unanswered$state == "unanswered", ]
  switch(row$kind,
    naive = naive_of(f),
    `such questions` = such_of(f$all, errors_of(f)),
    `weighted for leaving` = if (length(f$sides) == 1) widen(stayed_of(f), errors_of(f, stay = TRUE)) else stayed_of(f),
    `weighted to the population` = weighted_to_population(f),
    bounds = both_ends(ends_of(f, left, f$odds)),
    `bounds with excluded` = both_ends(ends_of(f, unanswered, f$odds)),
    `worst case` = both_ends(ends_of(f, left, Inf)),
    majority = majority_of(row),
    `sampled - holdout` = sampled_minus_holdout(f),
    `change within person` = change_of_row(row, f),
    `at any time` = at_any_time(f$stages[[part]], design$rho[design$part == part][1]),
    withheld = list(people = length(unique(answers$respondent[own_group(row)]))),
    c(f$all, list(agree = if (row$kind != "first items") agreement(f$stages))))
}

# Rows that estimates.csv must have, by the answers alone. First those of all figures and of their stages, over
# everything and in each part of each division that there is; then those that stand next to the figure `f` of some rows.

named <- function(figure, division, label, kind, stage = NA) {
  columns <- lapply(list(figure, division, label, kind, stage), function(x) ifelse(is.na(x), "", x))
  if (length(figure) && length(kind)) do.call(paste, c(columns, sep = " | "))
}
of_stages <- function(figure, division, label, kind) {  # and those of its stages
  stages <- parts[sort(unique(answers$part))]
  single <- lapply(stages, function(part) named(figure, division, label, paste0(kind, ", one stage"), part))
  c(named(figure, division, label, kind), unlist(single))
}
heads_of <- function(stated) {
  if (!nrow(answers)) return()
  every <- about$figure[about$kind != "check"]
  whole <- about$figure[about$kind != "check" & about$is_part == 0]
  answered <- parts[unique(answers$part)]
  of_division <- function(column) {
    kind <- sub("__.*", "", column)
    name <- sub("^[a-z]+__", "", column)
    if (kind == "level" && !name %in% stated$division[stated$kind != "at any time"]) return()  # nothing divided by it
    people <- table(answers[[column]][!duplicated(answers[c("respondent", column)])])
    labels <- sort(names(people), method = "radix")
    of_label <- function(label) {
      if (kind == "group" && people[label] < 10) return(named(NA, name, label, "withheld"))
      others <- if (kind == "group") sum(people) - people[label] >= 10 else kind == "level" && length(labels) > 2
      c(of_stages(every, name, label, "combined"), if (kind != "by") of_stages(helped, name, label, "assisted"),
        if (others) of_stages(every, name, label, "difference to the rest"))
    }
    both <- if (length(labels) == 2) switch(kind, level = every, by = whole)
    c(unlist(lapply(labels, of_label)), of_stages(both, name, paste(rev(labels), collapse = " - "), "difference"))
  }
  of_stage <- function(part) {
    p <- match(part, parts)
    if (design$several[match(p, design$part)] == 1) return()
    row <- data.frame(figure = about$figure[1], division = NA, label = NA, kind = "at any time",
                      stage = as.numeric(sub(" .*", "", part)), role = "sampled")
    two <- Filter(function(column) length(labels_in(column)) == 2, levels)
    unlist(lapply(c(NA, two), function(column) {
      both <- if (!is.na(column)) labels_in(column)
      row$division <- sub("level__", "", column)
      row$label <- if (length(both)) paste(rev(both), collapse = " - ") else NA
      if (!is.null(of_row(row, figure_of(row)))) named(row$figure, row$division, row$label, row$kind, part)
    }))
  }
  of_wave <- function(wave) {
    both <- sprintf("wave %d - wave %d", wave, wave - 1)
    under <- unlist(lapply(sub("level__", "", levels), function(factor) {
      labels <- labels_in(paste0("level__", factor))
      if (!any(startsWith(stated$label[stated$division %in% "wave"], paste0(both, ", ", factor)))) return()
      two <- if (length(labels) == 2) sprintf("%s: %s", factor, paste(rev(labels), collapse = " - "))
      paste0(both, ", ", c(paste0(factor, "=", labels), two))
    }))
    unlist(lapply(c(if (!is_under) both, under), function(label) named(every, "wave", label, "change within person")))
  }
  of_majorities <- function(stage) {
    names <- unique(majorities$stratum[majorities$stage == stage])
    named("majority_label", "stratum", c(if (length(names) > 1) names, "all"), "majority", paste(stage, "sampled"))
  }
  levels <- grep("^level__", names(design), value = TRUE)
  labels_in <- function(column) sort(unique(na.omit(design[[column]])), method = "radix")
  is_under <- any(lengths(lapply(levels, labels_in)) == 1)  # answers of one level alone
  waves <- sort(unique(design$wave[design$state == "answered"]))
  all <- design[design$state == "answered" & design$role == "sampled", ]
  both <- any(paste(adaptive, "sampled") %in% answered & paste(adaptive, "holdout") %in% answered)
  c(of_stages(every, NA, NA, "combined"), of_stages(helped, NA, NA, "assisted"), named(every, NA, NA, "first items"),
    of_stages(about$figure[about$kind == "check"], NA, NA, "check"),
    if (both) named(every, NA, NA, "sampled - holdout"),
    unlist(lapply(grep("^(level|group|by)__", names(design), value = TRUE), of_division)),
    if (!is_under) unlist(lapply(parts[unique(all$part)], of_stage)),
    unlist(lapply(waves[(waves - 1) %in% waves], of_wave)),
    if (!is_under) unlist(lapply(unique(majorities$stage), of_majorities)))
}
rest_of <- function(rows, f) {
  head <- rows[1, ]
  is_contrast <- head$kind %in% c("difference", "difference to the rest")
  is_helped <- is_contrast && f$level && head$figure %in% helped && !is.null(f$all)
  beside <- switch(head$kind, combined = next_to, difference = , `difference to the rest` = next_to[-(1:3)])
  beside <- setdiff(beside, c(rows$kind, names(left), if (!is.na(head$division)) "weighted to the population",
                              if (!any(unanswered$state == "excluded")) "bounds with excluded"))
  is_there <- sapply(beside, function(kind) isTRUE(diff(of_row(replace(head, "kind", kind), f)$ends) >= 0))
  c(named(head$figure, head$division, head$label, beside[as.logical(is_there)]),
    if (is_helped) of_stages(head$figure, head$division, head$label, "assisted difference"))
}
