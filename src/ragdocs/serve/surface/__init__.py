"""What each verb is called, takes and answers, declared once."""
