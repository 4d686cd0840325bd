/** The members of an object and the items of a list in a JSON text, which is known to be well formed. */

export type Span = { readonly name: string | null; readonly text: string }

/** The members of the outermost object or list of a text, in order; empty for anything else. A name may be repeated. */
export function spansOf(json: string): Span[] {
  const out: Span[] = []
  const text = json.trim()
  const isObject = text.startsWith('{')
  if (!isObject && !text.startsWith('[')) return out
  let depth = 0
  let start = 1
  let name: string | null = null
  let last = ''
  for (const { 0: token, index } of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g)) {
    if (token.startsWith('"')) last = token
    else if (token === '{' || token === '[') depth++
    else if (token === ':') {
      if (depth !== 1) continue
      name = JSON.parse(last) as string
      start = index + 1
    } else {
      if (token !== ',') depth--
      if (depth > (token === ',' ? 1 : 0)) continue
      const value = text.slice(start, index).trim()
      if (value !== '') out.push({ name: isObject ? name : null, text: value })
      start = index + 1
    }
  }
  return out
}

/** Tell whether a name is repeated in the outermost object of a text. */
export function hasNameTwice(json: string): boolean {
  const names = spansOf(json).flatMap(one => (one.name === null ? [] : [one.name]))
  return new Set(names).size < names.length
}
