/** White space and lines as in every other interface: those of Python, which differ slightly from JavaScript's. */

const WHITE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'
const RUN = new RegExp(`[${WHITE}]+`)
const EDGES = new RegExp(`^[${WHITE}]+|[${WHITE}]+$`, 'g')
const BEGIN = new RegExp(`^[${WHITE}]+`)
const END = new RegExp(`[${WHITE}]+$`)
const LINE_END = /\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]/

export { WHITE }
export const trim = (text: string): string => text.replace(EDGES, '')
export const trimStart = (text: string): string => text.replace(BEGIN, '')
export const trimEnd = (text: string): string => text.replace(END, '')
/** The words between white space. */
export const split = (text: string): string[] => text.split(RUN).filter(Boolean)
/** The lines, without an empty one after the last line end. */
export function linesOf(text: string): string[] {
  const lines = text.split(LINE_END)
  return lines.at(-1) === '' ? lines.slice(0, -1) : lines
}
