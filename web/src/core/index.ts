/** MEMORY.md: the index, always generated and never an input (FORMAT.md 1.3). */

import { byCodePoints, byteLength, need } from './bytes.ts'
import { fileName, INDEX_FILE, keyOfForeignName, splitConflictName } from './keys.ts'
import { isSessionPart } from './sessions.ts'
import { CONTROLS_AND_BREAKS, UNSEEN } from './unseen.ts'

export const SECTIONS: readonly (readonly [type: string, title: string])[] = [
  ['user', 'User'],
  ['feedback', 'Feedback'],
  ['project', 'Project'],
  ['reference', 'Reference']
]
const ATTENTION = 'Needs attention'
const TITLE = '# Agent Memory'
export const MOST_INDEX_LINES = 200
export const MOST_INDEX_BYTES = 25 * 1024

/** One line; `file` names a conflict copy, else the file is `<key>.md`. `session`: the header field. */
export type IndexItem = {
  readonly key: string
  readonly name?: string
  readonly description?: string
  readonly type?: string
  readonly file?: string | null
  readonly session?: string
}

/** Tell whether a memory is a part of a session, which is not in the index. */
const isPart = (item: IndexItem): boolean => isSessionPart(item.key, item.type ?? '', item.session ?? '')

/** Escape text as one line of Markdown without structure of its own. */
const shown = (text: string): string =>
  text
    .replace(UNSEEN, '')
    .replace(CONTROLS_AND_BREAKS, ' ')
    .replace(/^ +| +$/g, '')
    .replace(/[\\[\]()`<]/g, '\\$&')

function line(item: IndexItem): string {
  const copy = item.file ?? null
  if (copy !== null) need(splitConflictName(copy)?.key === item.key, 'format', `not the name of a conflict copy of ${item.key}`)
  const file = copy ?? fileName(item.key)
  const name = shown(item.name ?? '') || item.key
  const description = shown(item.description ?? '')
  return description === '' ? `- [${name}](${file})\n` : `- [${name}](${file}) — ${description}\n`
}

const sectionOf = (type: string | undefined): string => SECTIONS.find(one => one[0] === type)?.[1] ?? 'Project'

/** Return the section of a memory, empty if it is not in the index, and its line. */
export const indexLine = (item: IndexItem): { section: string; line: string } => ({ section: isPart(item) ? '' : sectionOf(item.type), line: line(item) })

/** Render the whole index. `attention`: conflict copies, which come last. */
export function renderIndex(items: readonly IndexItem[], attention: readonly IndexItem[] = []): string {
  const sections = new Map<string, string[]>([...SECTIONS.map(([, title]): [string, string[]] => [title, []]), [ATTENTION, []]])
  const byKey = (a: IndexItem, b: IndexItem): number => byCodePoints(a.key, b.key) || byCodePoints(a.file ?? '', b.file ?? '')
  for (const item of [...items].sort(byKey)) {
    const made = line(item)
    if (!isPart(item)) sections.get(sectionOf(item.type))?.push(made)
  }
  for (const item of [...attention].sort(byKey)) if (!isPart(item)) sections.get(ATTENTION)?.push(line(item))
  const parts = [...sections].filter(([, lines]) => lines.length > 0).map(([name, lines]) => `\n## ${name}\n${lines.join('')}`)
  return `${TITLE}\n${parts.join('')}`
}

/** The name of the file in a line, without its extension. */
const keyIn = (text: string): string => (/^- \[(?:[^\\\]]|\\.)*\]\(([^)]*)\)/.exec(text)?.[1] ?? '').replace(/\.md$/, '')

/**
 * Truncate the index for a prompt, at whole lines; the least relevant are dropped first, conflict copies last. `relevance`: keys, most
 * relevant first.
 */
export function capIndex(
  text: string,
  relevance: readonly string[] | null = null,
  mostLines = MOST_INDEX_LINES,
  mostBytes = MOST_INDEX_BYTES
): string {
  if (text.split('\n').length - 1 <= mostLines && byteLength(text) <= mostBytes) return text
  const [title = '', ...rest] = text.split('\n')
  const sections: { heading: string; lines: string[] }[] = []
  for (const one of rest) {
    if (one.startsWith('## ')) sections.push({ heading: one, lines: [] })
    else if (one !== '') sections.at(-1)?.lines.push(one)
  }
  const rank = new Map([...(relevance ?? []).entries()].reverse().map(([n, key]) => [key, n]))
  const all = sections.flatMap(({ heading, lines }, section) =>
    lines.map(one => ({ section, one, place: heading === `## ${ATTENTION}` ? -1 : (rank.get(keyIn(one)) ?? rank.size) }))
  )
  const notice = (count: number): string => `\n(${count} more not shown)\n`
  let roomLines = mostLines - 3 // the title, an empty line, the notice
  let roomBytes = mostBytes - byteLength(title) - 1 - byteLength(notice(all.length))
  const kept = new Map<number, { position: number; one: string }[]>()
  let count = 0
  const order = all.map((one, position) => ({ ...one, position })).sort((a, b) => a.place - b.place || a.position - b.position)
  for (const { section, one, position } of order) {
    const isFirst = !kept.has(section)
    const costLines = isFirst ? 3 : 1
    const costBytes = byteLength(one) + 1 + (isFirst ? 2 + byteLength(sections[section]?.heading ?? '') : 0)
    if (costLines > roomLines || costBytes > roomBytes) break
    roomLines -= costLines
    roomBytes -= costBytes
    count++
    kept.set(section, [...(kept.get(section) ?? []), { position, one }])
  }
  const parts = [...kept]
    .sort(([a], [b]) => a - b)
    .map(([section, lines]) => {
      const inOrder = lines.sort((a, b) => a.position - b.position).map(({ one }) => `${one}\n`)
      return `\n${sections[section]?.heading}\n${inOrder.join('')}`
    })
  return `${title}\n${parts.join('')}${notice(all.length - count)}`
}

/** The key of a memory made from other programs' lines of MEMORY.md. */
export const INDEX_KEY = keyOfForeignName(INDEX_FILE).key

/** An item that links to a memory. A lookahead is tried once, so the pattern does not backtrack. */
const LISTED = /^\s*[-*+]\s+(?:\[[^\n]*?\]\((?=(\s*<?))\1(?=([^()<>\n]+\.md))\2>?[^()\n]*\)|\[\[([^[\]\n|#]+))/
const LINES = /(?<=\r\n|[\n\v\f\x1c-\x1e\x85\u2028\u2029]|\r(?!\n))/

/** Decode the percent signs of a link. */
const unquoted = (text: string): string =>
  text.replace(/(?:%[0-9a-f]{2})+/gi, run => new TextDecoder().decode(Uint8Array.from(run.match(/[0-9a-f]{2}/gi) ?? [], one => Number.parseInt(one, 16))))

/**
 * Return the text in a MEMORY.md that is not its list; empty if only headings are left. `isHere`: tells whether a key has a memory here,
 * whose line is in the list.
 */
export function typedText(text: string, isHere: (key: string) => boolean): string {
  const kept = text.split(LINES).filter(one => {
    const [, , file, wiki] = LISTED.exec(one) ?? []
    const name = file === undefined ? wiki && `${wiki}.md` : unquoted(file)
    return name === undefined || !isHere(keyOfForeignName(name).key)
  })
  return kept.some(one => one.trim() !== '' && !one.startsWith('#')) ? kept.join('') : ''
}
