/** Another program's header at the beginning of a body: TOML, JSON, or YAML that is not parsed here (FORMAT.md 1.2). */

const END = '(?:\\r\\n|\\n|\\r)'
const OPEN = new RegExp(`^(---|\\+\\+\\+|;;;)[ \\t]*(?:([A-Za-z]+)[ \\t]*)?(?:#[^\\r\\n]*)?${END}`)
const closing = (lines: string): RegExp => new RegExp(`${END}(?:${lines})[ \\t]*(?:${END}|(?![^]))`, 'g')
const CLOSE: Readonly<Record<string, RegExp>> = { '---': closing('---|\\.\\.\\.'), '+++': closing('\\+\\+\\+'), ';;;': closing(';;;') }
/** Form of the first line between the marks, so that prose between two rules is not taken for a header. */
const FIRST: Readonly<Record<string, RegExp>> = {
  '---': /^(?:(?!-[ \t])[^ \t\r\n#:][^:]*:(?:[ \t]|(?![^]))|[%!&{<])/,
  '+++': /^(?:\[|[^ \t=#]+[ \t]*=)/,
  ';;;': /^[{"]/
}
const BLANK = new RegExp(`(?:[ \\t]*${END})*`, 'y')
const JSON_TOKEN = /"(?:[^"\\]|\\[^]?)*(?:"|$)|[{}[\]]/g
const LINE = new RegExp(`[ \\t]*${END}`, 'y')
/** Maximum nesting of a JSON header: every reader can parse that. */
const MOST_NESTED = 512

/** Return another program's header at the beginning of a body, with the blank lines after it; else empty text. */
export function frontMatter(body: string): string {
  const end = body.startsWith('{') ? jsonEnd(body) : markedEnd(body)
  if (end === null) return ''
  BLANK.lastIndex = end
  BLANK.exec(body)
  return body.slice(0, Math.max(BLANK.lastIndex, end))
}

/** Tell whether a text begins like a header without a closing line: then the extent of the header is unknown. */
export const isUnclosed = (text: string): boolean => marked(text.replace(/^\ufeff/, ''))?.end === null

const markedEnd = (body: string): number | null => marked(body)?.end ?? null

/** Return the end of a header between marks, null without a closing line; null alone without a header. */
function marked(body: string): { readonly end: number | null } | null {
  const open = OPEN.exec(body)
  if (open === null) return null
  const [whole, mark = '', language = ''] = open
  const close = CLOSE[mark] as RegExp
  close.lastIndex = whole.length - 1
  const found = close.exec(body)
  // The end of the opening line may be the one before the closing mark.
  const inside = body.slice(whole.length, found === null ? body.length : Math.max(found.index, whole.length))
  const lines = inside.split(/\r\n|\n|\r/).map(line => line.replace(/^[ \t]+|[ \t]+$/g, ''))
  const first = lines.find(line => line !== '' && !line.startsWith('#')) ?? ''
  if (language === '' && !(FIRST[mark] as RegExp).test(first)) return null
  return { end: found && found.index + found[0].length }
}

function jsonEnd(body: string): number | null {
  let depth = 0
  let end = -1
  for (const token of body.matchAll(JSON_TOKEN)) {
    depth += '{['.includes(token[0]) ? 1 : '}]'.includes(token[0]) ? -1 : 0
    if (depth > MOST_NESTED) return null
    if (depth > 0) continue
    end = token.index + token[0].length
    break
  }
  if (end < 0) return null
  LINE.lastIndex = end
  if (LINE.exec(body) === null) return null
  const after = LINE.lastIndex
  // A body that is JSON, or JSON lines, has no header.
  const next = /[^ \t\r\n]/.exec(body.slice(after))?.[0]
  if (next === undefined || next === '{' || next === '[') return null
  try {
    return Object.keys(JSON.parse(body.slice(0, end)) as object).length > 0 ? after : null
  } catch {
    return null
  }
}
