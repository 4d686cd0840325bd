/** Recall and context: the shown data of a device, prepared for `recall/`. */

import { byCodePoints, type Bytes } from '../core/bytes.ts'
import { cleanText } from '../core/fence.ts'
import { instant } from '../core/timeline.ts'
import { INDEX_KEY, indexLine, typedText } from '../core/index.ts'
import { fieldOf, type MemoryFile, readTags } from '../core/memory_file.ts'
import { isUse, lineOf, splitOwnId, unionOfScopes } from '../core/timeline.ts'
import type { ShownView } from '../core/views.ts'
import { type Block, type BlockHow, contextBlock, type FactLine, MATCHES_OF, type Memory, usualTokens } from '../recall/context.ts'
import { type Counted, type Document, type Ranked, Ranking, recency, worthOf } from '../recall/ranking.ts'
import { beginningsOf, queryFault, split, terms } from '../recall/terms.ts'
import type { Kind, Listed, Moment, MomentHit, Recall, Scopes, Why } from '../results.ts'
import { DAY_MS, localDay } from './days.ts'
import { needOneOf } from './arguments.ts'
import { MemoryError } from './errors.ts'
import type { Moments } from './moments.ts'
import { entryName, type Filters, headOf, readableFile, type Shown } from './shown.ts'
import type { Talks } from './talks.ts'

const MOST_HITS = 200
const MOST_EVENTS = 20

export type RecallHow = Omit<Filters, 'sessions'> & {
  readonly limit?: number
  readonly kind?: Kind
  readonly queries?: readonly string[]
  /** When it was written or said, with `since`: "last week", "may 2023", "since friday", 2026-05-03. */
  readonly until?: string | undefined
  readonly when?: string | undefined
  /** Its author: a device, its member, or a named speaker. */
  readonly by?: string | undefined
  /** A name that it mentions. */
  readonly about?: string | undefined
  readonly category?: string | undefined
  /** Requires an embedding model; this client has none, so it is refused. */
  readonly threshold?: number | undefined
  /** Each hit lists the words of the query that it contains. */
  readonly explain?: boolean
}

const KINDS: Readonly<Record<Kind, ReadonlySet<string>>> = {
  memory: new Set(['memory']),
  event: new Set(['event']),
  message: new Set(['message']),
  all: new Set(['memory', 'event', 'message'])
}
const NO_MOMENTS: Moments = { indexed: [], missing: 0 }
/**
 * Maximum number of words, and of different terms, of a lookup query; and the parts of a score of which a mere neighbour of a hit has none.
 */
const LOOKUP = 2
const SESSION = 'session'
const HAVING = ['words', 'date', 'day'] as const

/** The searched form of a memory, and its priority in a limited list; only there, uses count. */
type Weighed = { readonly document: Document; readonly worth: number; readonly place: number; readonly today: number; readonly used: string }

export class Finding {
  readonly #documents = new WeakMap<ShownView, Weighed>()
  readonly #counted = new WeakMap<Document, Counted>()
  readonly #lines = new WeakMap<ShownView, { readonly section: string; readonly line: string }>()
  readonly #rankings = new Map<Kind, Ranking>()

  /** Loaded before the first query. */
  #talks!: Talks

  constructor(readonly shown: Shown) {}

  /** Load the reader of events and messages. */
  async load(): Promise<void> {
    const { Talks } = await import('./talks.ts')
    this.#talks = new Talks(this.shown)
  }

  get #today(): number {
    return localDay(this.shown.replica.environment.now())
  }

  /**
   * Return the memories that match a query, or events, messages, or all (`kind`), best first; pending ones after own ones. `queries`: other
   * phrasings, each ranked separately; the best match of each comes first.
   */
  recall(query: string | null, scopes: readonly string[], how: RecallHow = {}): Recall {
    const { limit = 10 } = how
    if (!Number.isInteger(limit) || limit < 1 || limit > MOST_HITS) throw new MemoryError('usage', `limit is 1 to ${MOST_HITS}, not ${limit}`)
    return this.#found(query, scopes, how, limit)
  }

  /** Return the rank of one memory for a query and the parts of its score, or why it is not found. */
  why(key: string, query: string, scopes: readonly string[]): Why {
    const listed = this.shown.list(scopes, { sessions: true }).find(one => one.key === key)
    const found = this.#found(query, scopes, { explain: true }, Infinity)
    return this.#talks.why(key, query, found, this.#rankings.get('memory') as Ranking, listed, listed !== undefined && this.#hasExpired(listed, this.#today))
  }

  #found(query: string | null, scopes: readonly string[], { kind = 'memory', queries = [], type, tag, category, threshold, explain = false, since, until, when, by, about }: RecallHow, limit: number): Recall {
    const phrasings = this.#talks.phrasings(query, queries)
    for (const fault of phrasings.map(queryFault)) if (fault !== null) throw new MemoryError('usage', fault)
    if (threshold !== undefined) this.#talks.refuse(threshold)
    needOneOf('kind', kind, Object.keys(KINDS))
    const [which, today, isThen] = [KINDS[kind], this.#today, this.#talks.then({ since, until, when })]
    const everything = which.has('memory') ? this.shown.list(scopes, { sessions: true }) : []
    // Parts of sessions are found only with the type `session`. Any other filter restricts the hits alone, which are ranked with the words and neighbours of all entries.
    const isOfSessions = type === SESSION
    const listed = everything.filter(one => (isOfSessions ? one.type === type : !one.part))
    const all = new Map(listed.filter(one => one.here && !this.#isListAlone(one, scopes)).map(one => [one.key, one]))
    const expired = new Set([...all.values()].filter(one => this.#hasExpired(one, today)).map(one => one.key))
    const files = [...all.values()].map(one => this.#weighed(one, today, scopes).document)
    const { indexed: everyMoment, missing } = kind === 'memory' ? NO_MOMENTS : this.#talks.moments(scopes, which as ReadonlySet<Moment['kind']>)
    const indexed = everyMoment.filter(({ moment }) => !isOfSessions || moment.type === type)
    const ranking = this.#ranking(kind, [...files, ...indexed.map(one => one.document)])
    const moments = new Map(indexed.map((one, order) => [one.document.id, { moment: one.moment, order, document: one.document }]))
    const own = new Set([...[...all.values()].filter(one => one.own).map(one => one.key), ...indexed.filter(one => one.moment.own).map(one => one.document.id)])
    const writers = (): Parameters<Talks['writtenBy']>[2] => ({
      known: new Set([...everything.filter(one => one.here), ...everyMoment.map(one => one.moment)].map(one => one.device).filter(Boolean)),
      of: new Map([...all.values()].map((one): [string, string] => [one.key, one.device]).concat(indexed.map(one => [one.document.id, one.moment.device])))
    })
    // Events and messages have no tags and no category.
    const passing = new Set([
      ...[...all.values()].filter(one => (type === undefined || one.type === type) && (tag === undefined || one.tags.includes(tag)) && (category === undefined || this.#talks.categoryOf(one) === category) && isThen(one.at)).map(one => one.key),
      ...indexed.filter(({ moment }) => tag === undefined && category === undefined && (type === undefined || moment.type === type) && isThen(moment.at)).map(one => one.document.id)
    ])
    const isAll = [isOfSessions ? undefined : type, tag, category, since, until, when].every(one => one === undefined)
    const chosen = [...(isAll ? [] : [passing]), ...(by === undefined ? [] : [this.#talks.writtenBy(by, ranking, writers(), moments)]), ...(about === undefined ? [] : [this.#talks.naming(about, ranking)])]
    const only = chosen.length === 0 ? null : new Set([...(chosen[0] as Set<string>)].filter(id => chosen.every(one => one.has(id))))
    const lists = phrasings.map(one => {
      // A query of so few words is a lookup: entries without them are not wanted.
      const isLookup = kind !== 'memory' && split(one).length <= LOOKUP && new Set(terms(one)).size <= LOOKUP
      return this.#best(one, ranking, today, own, only).filter(({ id, parts }) => !expired.has(id) && (!isLookup || HAVING.some(part => parts[part] !== undefined)))
    })
    // Several phrasings examine a fixed number of hits, so that a small limit returns a prefix of a larger one.
    const best = lists.length === 1 ? (lists[0] as Ranked[]) : this.#talks.fused(lists.map(hits => hits.slice(0, MOST_HITS)), own)
    const found = best.slice(0, limit).map(({ id, score, parts }, n) => ({ id, rest: { score, parts, place: n + 1 } }))
    const words = explain ? this.#talks.wordsIn(phrasings, ranking) : () => []
    const hits = found.flatMap(({ id, rest }) => {
      const reading = moments.has(id) ? null : this.shown.readIn(id, all.get(id)?.scope ?? '')
      return reading === null ? [] : [{ reading, ...rest, words: words(reading) }]
    })
    return {
      hits,
      moments: found.flatMap(({ id, rest }) => {
        const { document, ...one } = moments.get(id) ?? {}
        return document === undefined ? [] : [{ ...(one as Pick<MomentHit, 'moment' | 'order'>), ...rest, words: words(document) }]
      }),
      searched: only === null ? ranking.size : only.size,
      notFetched: everything.filter(one => !one.here).length + missing
    }
  }

  /** Return the best, own ones before pending ones; `only`: among these. Texts of others do not affect the order of own ones. */
  #best(query: string, ranking: Ranking, today: number, own: ReadonlySet<string>, only: ReadonlySet<string> | null): Ranked[] {
    const ranked = (may: ((id: string) => boolean) | null): Ranked[] => {
      const found = ranking.rank(query, today, null, may)
      const beginnings = found.length > 0 ? [] : beginningsOf(query)
      const terms = beginnings.length > 0 ? ranking.beginningWith(beginnings).slice(0, MOST_TERMS) : []
      return terms.length > 0 ? ranking.rank(query, today, terms, may) : found
    }
    const isAsked = (id: string): boolean => only === null || only.has(id)
    if (own.size === ranking.size) return ranked(only === null ? null : isAsked)
    return [...ranked(id => own.has(id) && isAsked(id)), ...ranked(id => !own.has(id) && isAsked(id))]
  }

  /** Return the cached ranking of a kind while its documents are unchanged. */
  #ranking(kind: Kind, documents: readonly Document[]): Ranking {
    const held = this.#rankings.get(kind)
    if (held?.documents.length === documents.length && documents.every((one, at) => held.documents[at] === one)) return held
    const ranking = new Ranking(documents, this.#counted)
    this.#rankings.set(kind, ranking)
    return ranking
  }

  /** Tell whether it is past its last valid day. */
  #hasExpired(one: Listed, today: number): boolean {
    if (!one.here) return false
    const view = this.shown.view(entryName(one.key, one.scope))
    const until = view.shown === null ? null : dayOf(fieldOf(headOf(view.shown), 'expires'))
    return until !== null && until < today
  }

  /** Return what was typed into a MEMORY.md: its list repeats the memories that it names. */
  #typed(body: string, scopes: readonly string[]): string {
    const here = new Set(this.shown.list(scopes, { sessions: true }).map(one => one.key))
    return typedText(body, key => here.has(key))
  }

  #isListAlone({ key, here, scope }: Listed, scopes: readonly string[]): boolean {
    return key === INDEX_KEY && here && this.#typed(readableFile(this.shown.view(entryName(key, scope)).shown as Bytes).body, scopes) === ''
  }

  /** Return the searched form of a memory; the same object while it is unchanged. */
  #weighed(one: Listed, today: number, scopes: readonly string[]): Weighed {
    const name = entryName(one.key, one.scope)
    const view = this.shown.view(name)
    const before = this.shown.replica.usedBefore(name)
    const used = `${before}`
    const held = this.#documents.get(view)
    if (held?.today === today && held.used === used && one.key !== INDEX_KEY) return held
    const file = readableFile(view.shown as Bytes)
    const isList = one.key === INDEX_KEY
    const text = isList ? this.#typed(file.body, scopes) : file.body
    if (isList && held?.document.text === text && held.today === today && held.used === used) return held
    const at = lastChange(file, one.at)
    const until = dayOf(fieldOf(file, 'expires'))
    const expired = until !== null && until < today
    const last = Math.max(at ?? 0, before[1])
    const worthBy = (uses: number, last: number): number => worthOf({
      type: one.type,
      tags: one.tags.filter(tag => tag !== 'conflict').length,
      important: isYes(fieldOf(file, 'important')),
      confidence: confidenceOf(file),
      decay: fieldOf(file, 'decay'),
      idleDays: last === 0 ? 0 : today - last,
      uses,
      expired
    })
    const worth = worthBy(before[0], last)
    const header = [one.key, fieldOf(file, 'name'), fieldOf(file, 'description'), ...one.tags, fieldOf(file, 'category')].join(' ')
    const document = { id: one.key, text, header: isList ? '' : header, group: '', at, salience: worthBy(0, at ?? 0) }
    const counted = held === undefined || isList ? undefined : this.#counted.get(held.document)
    if (counted !== undefined) this.#counted.set(document, counted)
    const made = { document, worth, place: worth + (expired || last === 0 ? 0 : recency(today - last)), today, used }
    this.#documents.set(view, made)
    return made
  }

  /** Return the context of some scopes for a model. `preview`: a person looks at it. */
  context(scopes: Scopes, query: string | null, how: BlockHow, preview: boolean): Block {
    const { shown } = this
    const stack = [...new Set([...shown.stack(scopes), ''])]
    const { layout = 'index' } = how
    if ((layout === 'turn' || layout === 'ranked') && query === null) throw new MemoryError('usage', `the layout ${layout} requires a query`)
    const searched = this.#talks.queryIn(query ?? '')
    const names = shown.names()
    const hits = searched !== '' ? this.recall(searched, stack, { limit: MATCHES_OF(layout) }).hits.filter(hit => hit.reading.own) : []
    const memories = hits.map(({ reading }): Memory => {
      const file = readableFile(new TextEncoder().encode(reading.text))
      const written = reading.at > 0 ? dateOf(reading.at) : ''
      return {
        place: reading.scope === '' ? reading.key : `${reading.scope}/${reading.key}`,
        quoted: {
          key: reading.key,
          scope: reading.scope,
          body: file.body,
          name: fieldOf(file, 'name'),
          description: fieldOf(file, 'description'),
          type: fieldOf(file, 'type'),
          tags: readTags(fieldOf(file, 'tags')),
          written,
          by: reading.device === '' ? '' : (names.get(reading.device) ?? reading.device),
          source: fieldOf(file, 'source')
        }
      }
    })
    const talks = searched !== '' && this.#talks.mayBeIn(stack) ? this.#talks : null
    const matches = talks === null ? memories : talks.inOrder(memories, this.recall(searched, stack, { kind: 'all', limit: talks.looked(how) }), searched, how)
    const isWhole = layout === 'index' || layout === 'full'
    const facts = isWhole ? this.#facts(stack) : []
    const places = new Set(facts.map(one => entryName(one.key, one.scope)))
    const index = isWhole ? this.#index(stack).filter(one => !places.has(entryName(one.key, one.scope))) : []
    const block = contextBlock({ facts, matches, index, events: layout === 'full' ? this.#events(stack) : [], scopes: stack, talk: talks?.talk ?? null }, how)
    if (!preview) shown.replica.count(block.shown.map(place => `m/${place}`))
    return block
  }

  /** Return the own facts of some scopes that are valid today. */
  #facts(stack: readonly string[]): (FactLine & { readonly key: string })[] {
    const [{ shown }, today] = [this, this.#today]
    return shown.list(stack).flatMap(one => {
      const view = shown.view(entryName(one.key, one.scope))
      if (!one.own || view.shown === null) return []
      const file = readableFile(view.shown)
      const category = fieldOf(file, 'category')
      const text = cleanText(file.body).split(/\s+/).filter(Boolean).join(' ')
      const isFact = category !== '' && !NO_FACTS.has(one.type) && !one.tags.includes('entity') && text !== '' && [...text].length <= MOST_FACT
      if (!isFact || this.#hasExpired(one, today)) return []
      const said = categoryOf(category)
      const { h } = shown.writerOf(shown.replica.entry(entryName(one.key, one.scope)), view)
      const { worth } = this.#weighed(one, today, stack)
      return [{ scope: one.scope, key: one.key, line: `- [${said}] ${text}\n`, isRestriction: said === 'restriction', worth, writtenAt: h }]
    })
  }

  /** Return the index lines of some scopes, by priority, then last written first, then by key. */
  #index(stack: readonly string[]): { scope: string; key: string; section: string; line: string }[] {
    const [{ shown }, today] = [this, this.#today]
    const found = shown.list(stack, { sessions: true }).flatMap(one => {
      const name = entryName(one.key, one.scope)
      const view = shown.view(name)
      if (!one.own || view.shown === null || this.#hasExpired(one, today) || this.#isListAlone(one, stack)) return []
      let held = this.#lines.get(view)
      if (held === undefined) {
        const file = headOf(view.shown)
        const said = { key: one.key, name: fieldOf(file, 'name'), description: fieldOf(file, 'description'), type: fieldOf(file, 'type'), session: fieldOf(file, 'session') }
        this.#lines.set(view, (held = indexLine(said)))
      }
      return held.section === '' ? [] : [{ scope: one.scope, key: one.key, ...held, place: this.#weighed(one, today, stack).place, h: shown.writerOf(shown.replica.entry(name), view).h }]
    })
    return found.sort((a, b) => b.place - a.place || byCodePoints(b.h, a.h) || byCodePoints(a.key, b.key))
  }

  /** Return lines of the last events of this person's devices, oldest first. Imported events are in no block. */
  #events(stack: readonly string[]): string[] {
    const scopes = stack.filter(scope => !this.shown.isForgotten(scope))
    const noted = unionOfScopes(scopes.map(scope => this.shown.events(scope, true))).filter(event => splitOwnId(event.id) !== null && !isUse(event))
    return noted.slice(-MOST_EVENTS).map(lineOf)
  }
}

const MOST_TERMS = 64
/** Types of memories that have a category but are not facts, and maximum characters of a fact. */
const NO_FACTS: ReadonlySet<string> = new Set(['procedure', 'episode'])
const MOST_FACT = 2000
const MOST_CATEGORY = 64

/** Normalise a category: lower-case letters and digits of any script, `_` for each run of anything else. */
function categoryOf(said: string): string {
  const plain = said.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '_').replace(/^_+|_+$/g, '')
  return [...plain].slice(0, MOST_CATEGORY).join('').replace(/_+$/, '') || 'general'
}
export { usualTokens }

const isYes = (text: string): boolean => ['true', 'yes', '1'].includes(text.toLowerCase())

function confidenceOf(file: MemoryFile): number | null {
  const text = fieldOf(file, 'confidence')
  const value = /^[0-9.]+$/.test(text) ? Number(text) : Number.NaN
  return value >= 0 && value <= 1 ? value : null
}

/** Return the day of the last change: that of the header, unless it is after the day on which it was written here. */
function lastChange(file: MemoryFile, writtenAt: number): number | null {
  const written = writtenAt > 0 ? localDay(writtenAt) : null
  const said = dayOf(fieldOf(file, 'updated')) ?? dayOf(fieldOf(file, 'created'))
  return said !== null && written !== null ? Math.min(said, written) : (said ?? written)
}

/** Return the day at the start of an ISO 8601 date or instant, counted from 1970. */
function dayOf(text: string): number | null {
  const at = /^\d{4}-\d\d-\d\d/.test(text) ? instant(text.slice(0, 10)) : null
  return at === null ? null : at / DAY_MS
}

/** Return the UTC date of a time; empty outside the calendar. */
const dateOf = (at: number): string => (at < Date.UTC(10000, 0, 1) ? new Date(at).toISOString().slice(0, 10) : '')
