"""The nine things that users of such systems ask for, each as a walk through the real pages, commands and addresses.

1 the funnel live, with a warning where counts differ; 2 the replay of a person, and rejecting from there; 3 a study as
a file that comes back without a difference; 4 data and metadata in one click; 5 the version kept with each answer,
removed questions exported; 6 preview, made-up answers, bots; 7 returns, payment and bonus in one place; 8 speed and
agreement by person; 9 nothing lost without a word. A file is a scenario, a test function a part of it. The sixth
belongs to the copies of studies for trying out.
"""
