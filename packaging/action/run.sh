#!/usr/bin/env bash
# The load test of action.yml, and its comparison with the base branch. All inputs are variables; without GitHub it runs the same:
#
#   SERVER='./server --port {port}' BASE=main packaging/action/run.sh
#
# Writes comment.md and the results into FOLDER. Exits with 1 if a threshold, a condition or the comparison fails, with another code if
# something could not be run.
set -euo pipefail

if [ -z "${SERVER:-}" ]; then echo "error: SERVER is empty: the command that starts the server" >&2; exit 2; fi
: "${PLIMSOLL:=plimsoll}" "${BUILD:=}" "${URL:=http://127.0.0.1:{port\}/}" "${PORT:=18080}" "${DURATION:=30s}" "${WARM_UP:=5s}"
: "${CONNECTIONS:=50}" "${RATE:=}" "${THRESHOLDS:=}" "${EXPECT:=}" "${BASE:=none}" "${FAIL_IF_SLOWER:=10%}" "${TRIALS:=8}"
: "${TRIAL_SECONDS:=3}" "${UNTIL_SURE:=32}" "${IF_UNSURE:=fail}" "${ANSWERS_MAY_DIFFER:=true}" "${SELF_TEST:=false}" "${SERIES:=}"
: "${FOLDER:=plimsoll-results}" "${GITHUB_OUTPUT:=/dev/null}" "${GITHUB_STEP_SUMMARY:=/dev/null}"

mkdir "$FOLDER"
folder=$(realpath "$FOLDER")
echo "folder=$folder" >>"$GITHUB_OUTPUT"
comment=$folder/comment.md
failed=()

# quoted WORD: one word of a command that plimsoll splits as a shell does.
quoted() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# in_folder FOLDER: the command that starts the server there.
in_folder() { printf 'sh -c %s' "$(quoted "cd $(quoted "$1") && exec $SERVER")"; }

build() {
    if [ -n "$BUILD" ]; then (cd "$1" && bash -euo pipefail -c "$BUILD") || exit 3; fi
}

load() {
    local arguments=(load --duration "$DURATION" --warm-up "$WARM_UP" --connections "$CONNECTIONS")
    local line code=0
    if [ -n "$RATE" ]; then arguments+=(--rate "$RATE"); fi
    while IFS= read -r line; do
        if [ -n "$line" ]; then arguments+=(--threshold "$line"); fi
    done <<<"$THRESHOLDS"
    while IFS= read -r line; do
        if [ -n "$line" ]; then arguments+=(--expect "$line"); fi
    done <<<"$EXPECT"
    arguments+=(--out "$folder/load" --markdown "$folder/load.md" --junit "$folder/load.xml")
    if [ -n "$SERIES" ]; then arguments+=(--append "$SERIES" --run-name "$(git rev-parse --short=12 HEAD)"); fi
    local server
    server=$(in_folder "$PWD")
    "$PLIMSOLL" "${arguments[@]}" --spawn "${server//\{port\}/$PORT}" "${URL//\{port\}/$PORT}" || code=$?
    if [ "$code" -eq 1 ]; then failed+=("the load test"); elif [ "$code" -ne 0 ]; then exit "$code"; fi
    { echo "### Load test"; echo; cat "$folder/load.md"; } >>"$comment"
}

compare() {
    local commit code=0
    # A shallow checkout has only the commit that is tested.
    if ! commit=$(git rev-parse --verify --quiet "$BASE^{commit}"); then
        git fetch --quiet --depth 1 origin "$BASE"
        commit=$(git rev-parse FETCH_HEAD)
    fi
    base_folder=$(mktemp -d)
    trap 'git worktree remove --force "$base_folder"' EXIT
    git worktree add --quiet --detach "$base_folder" "$commit"
    build "$base_folder"
    local more=()
    # A change may change what is answered; that both sides answer at all is judged by the comparison.
    if [ "$ANSWERS_MAY_DIFFER" = true ]; then more+=(--answers-may-differ); fi
    if [ "$SELF_TEST" = true ]; then more+=(--self-test); fi
    "$PLIMSOLL" compare --name new --name base --drive "$URL" --trials "$TRIALS" --seconds "$TRIAL_SECONDS" --connections "$CONNECTIONS" \
        --fail-if-slower "$FAIL_IF_SLOWER" --until-sure "$UNTIL_SURE" "${more[@]}" \
        --out "$folder/compare" "$(in_folder "$PWD")" "$(in_folder "$base_folder")" || code=$?
    case $code in
        0) ;;
        1) failed+=("the comparison") ;;
        4) if [ "$IF_UNSURE" != pass ]; then failed+=("the comparison, which cannot tell"); fi ;;
        *) exit "$code" ;;
    esac
    { echo; echo "### Compared with ${commit:0:12}"; echo; echo '```'; cat "$folder/compare/compare.txt"; echo '```'; } >>"$comment"
}

build "$PWD"
load
if [ "$BASE" != none ]; then compare; fi
if [ -n "$SERIES" ]; then
    "$PLIMSOLL" report --trend --output "$folder/trend.txt" "$SERIES"
    "$PLIMSOLL" report --trend --format html --output "$folder/trend.html" "$SERIES"
    { echo; echo "### Costs over commits"; echo; echo '```'; cat "$folder/trend.txt"; echo '```'; } >>"$comment"
fi

verdict=passed
if [ "${#failed[@]}" -gt 0 ]; then
    verdict=failed
    printf '\n**Failed: %s.**\n' "$(printf '%s, ' "${failed[@]}" | sed 's/, $//')" >>"$comment"
fi
echo "verdict=$verdict" >>"$GITHUB_OUTPUT"
cat "$comment" >>"$GITHUB_STEP_SUMMARY"
[ "$verdict" = passed ]
