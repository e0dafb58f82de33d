#!/usr/bin/env bash
# Writes FOLDER/comment.md to the pull request, in place of the comment of an earlier run.
set -euo pipefail

mark='<!-- plimsoll load test -->'
body=$FOLDER/comment.md
if [ ! -s "$body" ]; then exit 0; fi
text=$(printf '%s\n' "$mark"; cat "$body")
earlier=$(gh api --paginate "repos/$REPOSITORY/issues/$PULL_REQUEST/comments" \
    --jq ".[] | select(.body | startswith(\"$mark\")) | .id")
# Not by `head`, which ends while gh still writes: that would be a failure of the pipe.
earlier=${earlier%%$'\n'*}
if [ -n "$earlier" ]; then
    gh api --silent --method PATCH "repos/$REPOSITORY/issues/comments/$earlier" --raw-field "body=$text"
else
    gh api --silent --method POST "repos/$REPOSITORY/issues/$PULL_REQUEST/comments" --raw-field "body=$text"
fi
