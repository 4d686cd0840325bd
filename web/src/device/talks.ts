/** Events and messages for recall and a context block. Loaded with a vault, apart from what a page needs first. */

import { byCodePoints } from '../core/bytes.ts'
import { trim } from '../core/white.ts'
import { type BlockHow, LOOKED_OF, type Match, type Memory, SAID_OF } from '../recall/context.ts'
import { fused } from '../recall/fusion.ts'
import type { Document, Ranked, Ranking } from '../recall/ranking.ts'
import { likened, spelled } from '../recall/spelling.ts'
import { saidLine, soughtBy, Talk } from '../recall/talk.ts'
import { LEAST_BEGINNING, MOST_QUERY, split, terms, uncased, wordsOf } from '../recall/terms.ts'
import { ALWAYS, FOREVER, sinceUntil } from '../recall/time_ranges.ts'
import { fieldOf, readTags } from '../core/memory_file.ts'
import { lineOf } from '../core/timeline.ts'
import type { Listed, Moment, MomentHit, Reading, Recall, Why } from '../results.ts'
import { needText } from './arguments.ts'
import { localDay, localMoment } from './days.ts'
import { MemoryError } from './errors.ts'
import { mayHaveMoments, type Moments, momentsOf, saidBy, whenOf } from './moments.ts'
import { entryName, readableFile, type Shown } from './shown.ts'

/** Maximum number of messages in a block between two memories. */
const SAID_BETWEEN = 4
const MOST_PHRASINGS = 8
/** Characters of the end of a long prompt that are read before its beginning. */
const END = 400
/** Fields of an event that name its author or speaker. */
const WHO = ['speaker', 'by', 'author', 'from', 'name', 'user', 'who', 'sender', 'agent']

export class Talks {
  #held: { readonly revision: number; readonly of: string; readonly moments: Moments } | null = null

  constructor(readonly shown: Shown) {}

  /** The events and messages of some scopes. Unchanged documents are the same objects. */
  moments(scopes: readonly string[], which: ReadonlySet<Moment['kind']>): Moments {
    const { revision } = this.shown.replica
    const of = [...which, ...scopes].join('\n')
    if (this.#held?.revision !== revision || this.#held.of !== of) {
      const before = new Map(this.#held?.moments.indexed.map(one => [one.document.id, one.document]))
      const { indexed, missing } = momentsOf(this.shown, scopes, which)
      const kept = indexed.map(({ moment, document }) => {
        const old = before.get(document.id)
        const isSame = old !== undefined && old.text === document.text && old.header === document.header && old.at === document.at
        return { moment, document: isSame ? old : document }
      })
      this.#held = { revision, of, moments: { indexed: kept, missing } }
    }
    return this.#held.moments
  }

  /**
   * Return the query in a prompt: of a long one its end and then its beginning, where the question is if much is pasted in between. Empty
   * without a word.
   */
  queryIn(prompt: string): string {
    const letters = [...prompt]
    const query = letters.length <= MOST_QUERY ? prompt : [...letters.slice(-END), ' ', ...letters.slice(0, MOST_QUERY - END - 1)].join('')
    return split(query).length === 0 ? '' : query
  }

  /** The distinct phrasings of a question. */
  phrasings(query: string | null, queries: readonly string[]): string[] {
    if (!Array.isArray(queries)) throw new MemoryError('usage', 'queries is a list of texts; one text is query')
    const found = [...new Set([...(query === null ? [] : [query]), ...queries])]
    for (const one of found) needText('a phrasing', one)
    if (found.length === 0) throw new MemoryError('usage', 'recall needs a query, or queries with several phrasings')
    if (found.length > MOST_PHRASINGS) throw new MemoryError('usage', `queries has at most ${MOST_PHRASINGS} phrasings, not ${found.length}`)
    return found
  }

  /** Return the filter by time; an unknown time, 0, passes only if no range is requested. */
  then(range: Parameters<typeof sinceUntil>[0]): (at: number) => boolean {
    for (const name of ['since', 'until', 'when'] as const) if (range[name] !== undefined) needText(name, range[name])
    const [begin, end] = sinceUntil(range, this.shown.replica.environment.now(), { dayOf: localDay, momentOf: localMoment })
    return at => (at !== 0 || (begin === ALWAYS && end === FOREVER)) && begin <= at && at < end
  }

  /** Merge the hits of several phrasings into one list, own ones before pending ones. */
  fused(lists: readonly (readonly Ranked[])[], own: ReadonlySet<string>): Ranked[] {
    return [true, false].flatMap(isOwn => fused(lists.map(hits => hits.filter(({ id }) => own.has(id) === isOwn))))
  }

  /**
   * Return the ids of what a device or member wrote, or a named speaker said. `writers`: the author of each memory; `byId`: events and
   * messages by id.
   */
  writtenBy(by: string, ranking: Ranking, writers: { readonly known: ReadonlySet<string>; readonly of: ReadonlyMap<string, string> }, byId: ReadonlyMap<string, { readonly moment: Moment }>): Set<string> {
    needText('by', by)
    const called = uncased(trim(by))
    if (called === '') throw new MemoryError('usage', 'by is empty: pass a name, such as Ana')
    const [names, ring] = [this.shown.names(), this.shown.replica.ring]
    const nameOf = (device: string): string => names.get(device) || device
    const memberOf = (device: string): string => {
      const owner = ring?.said.members.has(device) ? ring.said.persons.get(device) : undefined
      return owner === undefined ? '' : nameOf(owner)
    }
    const devices = new Set([...writers.known].filter(device => [device, uncased(nameOf(device)), uncased(memberOf(device))].includes(called)))
    const sought = terms(by)
    const speaks = (id: string): boolean => {
      const event = byId.get(id)?.moment.event
      if (event === undefined) return false
      return event === null || WHO.some(field => typeof event[field] === 'string' && includes(terms(event[field]), sought))
    }
    const found = new Set(ranking.documents.flatMap(({ id }) => {
      const moment = byId.get(id)?.moment
      return devices.has(writers.of.get(id) ?? '') || (moment?.kind === 'message' && moment.type === called) ? [id] : []
    }))
    for (const id of ranking.idsWith(sought, 'header')) if (speaks(id)) found.add(id)
    if (found.size === 0 && devices.size === 0) {
      const all = [...new Set([...writers.known].map(nameOf))].sort(byCodePoints).slice(0, 10).join(', ')
      throw new MemoryError('usage', `nobody who wrote here is called ${JSON.stringify([...by].slice(0, 60).join(''))}, and no speaker in the searched texts`, `Writers: ${all || 'nobody yet'}.`)
    }
    return found
  }

  /** Return the ids of entries that contain a name, in their words or as their speaker. */
  naming(about: string, ranking: Ranking): Set<string> {
    needText('about', about)
    const sought = terms(about)
    if (sought.length === 0) throw new MemoryError('usage', 'about has no words: pass a name, such as Ana')
    return new Set(ranking.idsWith(sought, 'words'))
  }

  /** The category of a memory; empty if its text is not here. */
  categoryOf({ key, scope }: Listed): string {
    const { shown } = this.shown.view(entryName(key, scope))
    return shown === null ? '' : fieldOf(readableFile(shown), 'category')
  }

  /** Refuse a minimum similarity, which requires a model. */
  refuse(threshold: unknown): never {
    if (typeof threshold !== 'number' || !(threshold >= -1 && threshold <= 1)) throw new MemoryError('usage', `threshold is -1 to 1, not ${String(threshold).slice(0, 60)}`)
    throw new MemoryError('usage', 'a threshold requires a model, and none is set', 'This client ranks by words alone. Leave the threshold out.')
  }

  /**
   * Return a function that lists the words of some phrasings in a memory, an event or a message, also by the indexed term that replaces an
   * unknown one.
   */
  wordsIn(phrasings: readonly string[], ranking: Ranking): (of: Reading | Document) => string[] {
    const words = [...new Set(phrasings.flatMap(wordsOf))]
    const { having } = ranking
    const times = (term: string): number => having.get(term) ?? 0
    const sought = [...new Set(words.flatMap(terms))]
    const taken = likened(spelled(sought, times), times, having.keys())
    const meant = new Map(sought.map((term, n) => [term, taken[n] as string]))
    return of => {
      const there = new Set(terms('header' in of ? `${of.header} ${of.text}` : searchedOf(of)))
      const begins = (word: string): boolean => [...word].length >= LEAST_BEGINNING && [...there].some(term => term.startsWith(word))
      return words.filter(word => {
        const its = terms(word)
        return its.some(term => there.has(meant.get(term) as string)) || (its.length > 0 && begins(word))
      })
    }
  }

  /** Return the rank of one memory among the results. */
  why(key: string, query: string, { hits, searched }: Recall, ranking: Ranking, listed: (Listed & { readonly part: boolean }) | undefined, hasExpired: boolean): Why {
    const reading = listed === undefined ? null : this.shown.readIn(key, listed.scope)
    if (listed === undefined || reading === null) throw new MemoryError('not found', `there is no memory ${key}`)
    const words = wordsOf(query)
    const has = this.wordsIn([query], ranking)(reading)
    const place = hits.findIndex(hit => hit.reading.key === key) + 1
    const [hit, before] = [hits[place - 1], hits[place - 2]]
    const notFound = hasExpired
      ? `it was valid until ${fieldOf(readableFile(new TextEncoder().encode(reading.text)), 'expires').slice(0, 10)}`
      : listed.part
        ? 'it is part of a session, and only a search of messages finds it'
        : has.length === 0
          ? 'it contains none of the words'
          : 'too many others match better'
    return {
      reading,
      place,
      hits: hits.length,
      searched,
      score: hit?.score ?? 0,
      parts: hit?.parts ?? {},
      words: has,
      missing: words.filter(word => !has.includes(word)),
      reason: hit === undefined ? notFound : '',
      before: before?.reading.key ?? '',
      beforeParts: before?.parts ?? {}
    }
  }

  /** Tell whether these scopes may have an event or a message. */
  mayBeIn(scopes: readonly string[]): boolean {
    return mayHaveMoments(this.shown, scopes)
  }

  /** The lines of a block that already contains the text `known`. */
  talk(known: string): Talk {
    return new Talk(known)
  }

  /**
   * Order memories and message lines, best first. `answer`: the search of both. Scores of two searches are not comparable, so a memory has
   * its rank in that search, but follows at most some lines for each memory before it.
   */
  inOrder(memories: readonly Memory[], answer: Recall, query: string, { layout = 'index', running = '' }: BlockHow): Match[] {
    const said = answer.moments.filter(({ moment }) => moment.own && (running === '' || moment.session !== running)).slice(0, SAID_OF(layout))
    const [sought, answered] = [soughtBy(query), answeredBy(said)]
    const places = new Map(answer.hits.map(hit => [entryName(hit.reading.key, hit.reading.scope), hit.place]))
    const lines = said.map(({ moment, order }, at): [place: number, kind: number, match: Match] => {
      const mark = moment.event === null ? `${moment.scope}\n${order}` : lineOf(moment.event)
      return [at, 1, saidLine({ at: moment.at, order, when: whenOf(moment), who: moment.type, text: saidBy(moment), mark, question: answered.get(order) ?? '' }, sought)]
    })
    const between = memories.map((memory, at): [place: number, kind: number, match: Match] => {
      const place = places.get(`m/${memory.place}`)
      const better = place === undefined ? said.length : said.filter(one => one.place < place).length
      return [Math.min(SAID_BETWEEN * at, better), 0, memory]
    })
    return [...lines, ...between].sort(([a, one], [b, other]) => a - b || one - other).map(([, , match]) => match)
  }

  /** Number of hits examined for messages and events. */
  looked({ layout = 'index', running = '' }: BlockHow): number {
    return LOOKED_OF(layout) + (running === '' ? 0 : SAID_OF('index'))
  }
}

/** The searched text of a memory. */
function searchedOf({ key, text }: Reading): string {
  const file = readableFile(new TextEncoder().encode(text))
  const header = [key, fieldOf(file, 'name'), fieldOf(file, 'description'), ...readTags(fieldOf(file, 'tags')), fieldOf(file, 'category')]
  return `${header.join(' ')}\n${file.body}`
}

const includes = (all: readonly string[], some: readonly string[]): boolean => some.every(one => all.includes(one))

/** By its order, the user's message that an agent's message answers: the one found before it in its session. */
function answeredBy(said: readonly MomentHit[]): ReadonlyMap<number, string> {
  const answered = new Map<number, string>()
  let question: Moment | null = null
  for (const { moment, order } of [...said].sort((a, b) => a.order - b.order)) {
    if (moment.event === null && moment.type === 'user') question = moment
    else if (question !== null && question.scope === moment.scope && question.session === moment.session) answered.set(order, question.text)
  }
  return answered
}
