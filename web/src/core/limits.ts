/** Sizes used by several modules (FORMAT.md 8), in bytes. */

/** The text of one memory file. */
export const MOST_FILE = 983_040
/** A sealed object. */
export const MOST_OBJECT = 1 << 20
/** A line of a timeline, without its LF. */
export const MOST_LINE = 65_536
