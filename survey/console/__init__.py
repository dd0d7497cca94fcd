"""What the commands share: their base class, tables, progress bars, figures of predictors."""
