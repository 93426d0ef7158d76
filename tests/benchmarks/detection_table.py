def totals(rows): return {"rows":len(rows)}
def markdown(b): return ""
