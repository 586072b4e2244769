#!/bin/sh
# A gate for a change of the triage prompt: sh examples/debug-a-refund/ci-gate.sh PROMPT
# Exit code 0 where every run of wrong-runs.txt comes to another outcome, and every other one of the last 50 to the same; else
# 1, also where one asks what nobody answered, or cannot be compared. Nothing is paid, and nobody is asked. OPENWOP_URL and
# OPENWOP_API_KEY say which host has the runs.
set -eu
exec npm run -s openwop -- replay --last 50 --workflow shop-refunds --prompt "triage=$1" \
  --fail-on outcome --wrong "@$(dirname "$0")/wrong-runs.txt"
