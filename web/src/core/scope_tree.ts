/**
 * All scopes as plain files, the tree of a folder, a zip or a CAR: written, read, and mapped to scopes here (FORMAT.md 1.6). Pure functions
 * on texts by path.
 */

import type { Text } from './blob.ts'
import { fileOf } from './blob_reading.ts'
import { byCodePoints, type Bytes, canonical, fields, fromUtf8, isObject, need, parseJson, unlessRefused, utf8 } from './bytes.ts'
import { type Card, compareIds, parseCard } from './cards.ts'
import { INDEX_FILE, isKey, isScope, splitConflictName } from './keys.ts'
import { MOST_FILE, MOST_LINE } from './limits.ts'
import { instant, lineOf, parseLines, type TimelineEvent, union } from './timeline.ts'

const SCOPE_FILE = 'scope.json'
const OTHERS = 'others/'
const MOST_NAMES = 250_000
const MOST_BYTES = 512 << 20
const MOST_SCOPE_FILE = 16 << 20
const MOST_CARD_IDS = 1024
export const MOST_SCOPES = 4096
const MOST_EVENTS = 500_000

/** The content of one scope. `texts` by file name, others' in `others/`; `forgotten`: keys whose texts are hidden by a forget. */
export type Base = {
  readonly texts: ReadonlyMap<string, string>
  readonly events: readonly TimelineEvent[]
  readonly index: string
  readonly card: Card | null
  readonly forgotten: readonly string[]
}

/** The files of one scope by their paths in the tree. */
export function baseFiles(scope: string, { texts, events, index, card, forgotten }: Base): Map<string, string> {
  const top = scope === '' ? '' : `scopes/${scope}/`
  const files = new Map([...texts].map(([name, text]) => [`${top}memory/${name}`, text]))
  files.set(`${top}memory/${INDEX_FILE}`, index)
  for (const event of events) {
    const path = `${top}memory/timeline/${new Date(instant(event.ts) ?? 0).toISOString().slice(0, 10)}.jsonl`
    files.set(path, `${files.get(path) ?? ''}${lineOf(event)}\n`)
  }
  if (card !== null || forgotten.length > 0) files.set(top + SCOPE_FILE, `${canonical({ card, forgotten: [...forgotten].sort(byCodePoints), v: 1 })}\n`)
  return files
}

/** The content of one scope in a tree. */
export type Part = {
  readonly files: ReadonlyMap<string, string>
  /** Further texts for a key, conflict copies among them, and texts of others. */
  readonly more: readonly Text[]
  readonly others: readonly Text[]
  readonly events: readonly TimelineEvent[]
  readonly forgotten: readonly string[]
  readonly card: Card | null
  /** What was left out, and why; the keys of unreadable files. */
  readonly problems: readonly string[]
  readonly unread: ReadonlySet<string>
}

/** Return the folder and the file name of a path `scopes/<folder>/memory/...`. */
function inBase(path: string): { folder: string; name: string } | null {
  const [top, folder = '', middle, ...rest] = path.split('/')
  return top === 'scopes' && middle === 'memory' && rest.length > 0 ? { folder, name: rest.join('/') } : null
}

/** Return the scopes of a tree by their tokens there, always including the default scope. Refused as `limit`. */
export function readScopeTree(tree: ReadonlyMap<string, Bytes>): Map<string, Part> {
  need(tree.size <= MOST_NAMES, 'limit', `there are more than ${MOST_NAMES} files in it`)
  const size = [...tree.values()].reduce((sum, data) => sum + data.length, 0)
  need(size <= MOST_BYTES, 'limit', `there are more than ${MOST_BYTES} bytes in it`)
  const paths = [...tree.keys()].sort(byCodePoints)
  const isWhole = paths.some(path => path.startsWith('memory/') || inBase(path) !== null)
  const problems: string[] = []
  const inside = new Map<string, [name: string, path: string][]>([['', []]])
  const beside = new Map<string, string>()
  for (const path of paths.filter(one => !one.split('/').some(part => part.startsWith('.')))) {
    if (!isWhole) inside.get('')?.push([path, path])
    else if (path.startsWith('memory/')) inside.get('')?.push([path.slice('memory/'.length), path])
    else if (path === SCOPE_FILE) beside.set('', path)
    else if (path.startsWith('scopes/')) {
      const base = inBase(path)
      const scope = base?.folder ?? (path.split('/')[1] as string)
      if (base === null && path !== `scopes/${scope}/${SCOPE_FILE}`) continue
      const said = `the folder scopes/${scope.slice(0, 120)} was left out: it is not a valid scope`
      if (!isScope(scope)) {
        if (problems.at(-1) !== said) problems.push(said)
      } else if (base === null) beside.set(scope, path)
      else inside.set(scope, [...(inside.get(scope) ?? []), [base.name, path]])
    }
  }
  for (const scope of beside.keys()) if (!inside.has(scope)) inside.set(scope, [])
  need(inside.size <= MOST_SCOPES + 1, 'limit', `at most ${MOST_SCOPES} scopes are allowed in it`)
  const scopes = [...inside].sort(([a], [b]) => byCodePoints(a, b))
  const room = { events: MOST_EVENTS }
  return new Map(scopes.map(([scope, all]) => [scope, partOf(scope, all, beside.get(scope), tree, room, scope === '' ? problems : [])]))
}

function partOf(scope: string, inside: readonly [string, string][], beside: string | undefined, tree: ReadonlyMap<string, Bytes>, room: { events: number }, problems: string[]): Part {
  const where = scope === '' ? '' : `${scope}/`
  const files = new Map<string, string>()
  const [renamed, copies, others]: [Text[], Text[], Text[]] = [[], [], []]
  const days: TimelineEvent[][] = []
  const unread = new Set<string>()
  for (const [name, path] of inside) {
    const data = tree.get(path) as Bytes
    if (name.endsWith('.jsonl')) days.push(eventsOf(where + name, data, room, problems))
    if (!name.endsWith('.md') || name === INDEX_FILE) continue
    const copy = splitConflictName(name.startsWith(OTHERS) ? name.slice(OTHERS.length) : name)
    try {
      need(data.length <= MOST_FILE, 'limit', `it has more than ${MOST_FILE} bytes`)
      const text = fromUtf8(data)
      if (copy !== null) (name.includes('/') ? others : copies).push([copy.key, text])
      else {
        const read = fileOf(name, text)
        if (read.isForeign) renamed.push([read.key, read.text])
        else files.set(read.key, read.text)
      }
    } catch (error) {
      problems.push(`${where}${name} was left out: ${error instanceof Error ? error.message : error}`)
      if (!name.includes('/')) unread.add(copy?.key ?? name.slice(0, -'.md'.length))
    }
  }
  const more: Text[] = []
  for (const [key, text] of [...renamed, ...copies]) {
    const held = files.get(key)
    if (held === undefined) files.set(key, text)
    else if (held !== text) more.push([key, text])
  }
  const said = beside === undefined ? { card: null, forgotten: [] } : besideOf(beside, tree.get(beside) as Bytes, problems)
  return { files, more, others, events: union(days), ...said, problems, unread }
}

function eventsOf(name: string, data: Bytes, room: { events: number }, problems: string[]): TimelineEvent[] {
  const named = /(?:^|\/)(\d{4}-\d\d-\d\d)\.jsonl$/.exec(name)?.[1] ?? ''
  const day = instant(named) === null ? null : named
  const all = [...new Map(parseLines(data, day).map(event => [lineOf(event), event])).values()]
  room.events -= all.length
  need(room.events >= 0, 'limit', `there are more than ${MOST_EVENTS} different lines in its timelines`)
  const short = all.filter(event => utf8(lineOf(event)).length <= MOST_LINE)
  if (short.length < all.length) problems.push(`${all.length - short.length} of ${name} was left out, too long for a line`)
  return short
}

/** Parse `scope.json`; a card that breaks a rule is left out alone, so that forgotten keys stay forgotten. */
function besideOf(path: string, data: Bytes, problems: string[]): Pick<Part, 'card' | 'forgotten'> {
  const value = unlessRefused(() => {
    need(data.length <= MOST_SCOPE_FILE, 'limit')
    const said = fields(parseJson(fromUtf8(data)), [], ['card', 'forgotten', 'v'])
    const { card = null, forgotten = [], v = 1 } = said
    need(v === 1 && Array.isArray(forgotten) && forgotten.every(one => typeof one === 'string'), 'format')
    return { card, forgotten: forgotten as string[] }
  })
  if (value === null) {
    problems.push(`${path} was not read: it is of another form`)
    return { card: null, forgotten: [] }
  }
  const forgotten = [...new Set(value.forgotten.filter(isKey))].sort(byCodePoints)
  if (value.card === null) return { card: null, forgotten }
  const { ids = [], ...rest } = isObject(value.card) ? value.card : {}
  const parsed = (some: readonly unknown[]): Card => parseCard(utf8(canonical({ into: null, kind: 'workspace', v: 1, ...rest, ids: some })))
  // The ids of all its siblings, possibly more than one card may have.
  const card = unlessRefused(() => {
    need(Array.isArray(ids) && ids.length <= MOST_CARD_IDS, 'limit')
    const all = new Map((ids as unknown[]).flatMap(one => parsed([one]).ids).map(one => [canonical(one), one]))
    return { ...parsed([]), ids: [...all.values()].sort(compareIds) }
  })
  if (card === null) problems.push(`the card in ${path} was left out: it breaks a rule of cards`)
  return { card, forgotten }
}

export type Assigning = {
  /** The person's choices: the scope here for one there. */
  readonly maps?: Readonly<Record<string, string>>
  /** Tokens in use here, and those of them made by this device. */
  readonly live?: readonly string[]
  readonly own?: readonly string[]
  readonly forgotten?: readonly string[]
  /** Whether the tree is a backup of this vault, so that equal tokens mean one scope. */
  readonly same?: boolean
}

/**
 * Return the scope here for each scope of a tree, decided before anything is written. Refused if a choice of the person is missing or
 * wrong.
 */
export function assignScopes(theirs: readonly string[], { maps = {}, live = [], own = [], forgotten = [], same = false }: Assigning): Map<string, string> {
  for (const [source, target] of Object.entries(maps)) {
    need(theirs.includes(source), 'format', `there is no scope ${source} in the import`)
    need(target === '' || isScope(target), 'format', `${target} is not a scope name`)
  }
  const chosen = new Map([...theirs].sort(byCodePoints).map(scope => [scope, maps[scope] ?? scope]))
  for (const [scope, here] of chosen) {
    need(!forgotten.includes(here), 'format', `the scope ${here} is forgotten here, so nothing can be put there`)
    const isSaid = scope === '' || Object.hasOwn(maps, scope) || same || !live.includes(scope)
    need(isSaid, 'format', `there is a scope ${scope} here already, and the import has one of this name`)
  }
  const targets = [...chosen.values()]
  for (const here of targets) need(targets.filter(one => one === here).length === 1, 'format', `several scopes cannot all become ${here === '' ? 'the default scope' : here}: that would mix them`)
  const fresh = targets.filter(here => here !== '' && !live.includes(here))
  need(own.length + fresh.length <= MOST_SCOPES, 'limit', `at most ${MOST_SCOPES} scopes of one device are allowed`)
  return chosen
}
