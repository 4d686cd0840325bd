/** Split a long text into passages of lines and sentences, so that one answer among many lines is found separately. */

/** Characters up to which a text is one passage, and up to which lines and sentences are combined into one. */
const WHOLE = 900
const PACKED = 600
const END = /\n+|[.!?][ \t\r\n]+|[。！？]/g

/** Return the passages of a text, which cover all of it. A longer sentence is not cut. */
export function passages(text: string): string[] {
  if (text.length <= WHOLE || long(text) <= WHOLE) return [text]
  const found: string[] = []
  let [start, end, size] = [0, 0, 0]
  for (const cut of [...[...text.matchAll(END)].map(one => one.index + one[0].length), text.length]) {
    const more = long(text.slice(end, cut))
    if (end > start && size + more > PACKED) {
      found.push(text.slice(start, end))
      ;[start, size] = [end, 0]
    }
    ;[end, size] = [cut, size + more]
  }
  return [...found, text.slice(start)]
}

/** Length in characters, where JavaScript counts some twice. */
export const long = (text: string): number => text.length - (text.match(/[\ud800-\udbff][\udc00-\udfff]/g)?.length ?? 0)
