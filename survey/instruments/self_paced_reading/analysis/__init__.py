"""What reading times say: cleaning, mean times, slopes of surprisal, delta log-likelihood. Arrays in and out."""
