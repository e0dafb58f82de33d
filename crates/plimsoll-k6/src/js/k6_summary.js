// VERSION is that of the URL by which a script imports the library.
const library = globalThis[Symbol.for("plimsoll.native")].use("summaries")("VERSION");

export const { textSummary, jUnit, humanizeValue } = library;

export default library;
