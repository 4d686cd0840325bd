/** Invisible characters, and those that change the direction of text (FORMAT.md 1.3). */

const RANGES =
  '\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0e\\ufeff\\uffa0\\ufff0-\\ufffb\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}'

/** A run of them. */
export const UNSEEN = new RegExp(`[${RANGES}]+`, 'gu')
/** A run of control characters or line breaks of any kind. */
export const CONTROLS_AND_BREAKS = /[\x00-\x1f\x7f-\x9f\u2028\u2029]+/g
const NOT_IN_LABELS = new RegExp(`[\\p{Cc}\\u2028\\u2029${RANGES}]`, 'u')

/** Tell whether a text can be the label of a device or a scope: 1 to 128 bytes, all visible. */
export function isLabel(text: unknown): text is string {
  if (typeof text !== 'string' || !text.isWellFormed() || NOT_IN_LABELS.test(text)) return false
  const size = new TextEncoder().encode(text).length
  return size >= 1 && size <= 128
}
