"""What people see of it: reports, history, metrics, alerts, checks, retention."""
