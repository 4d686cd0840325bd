/** Events and messages for recall and a context block. Loaded with a memory, beside what a page needs first. */

import { type BlockHow, LOOKED_OF, type Match, type Memory, SAID_OF } from '../recall/context.ts'
import { saidLine, soughtBy, Talk } from '../recall/talk.ts'
import { lineOf } from '../core/timeline.ts'
import type { Moment, MomentHit, Recall } from '../results.ts'
import { mayHaveMoments, type Moments, momentsOf, saidBy, whenOf } from './moments.ts'
import { entryName, type Shown } from './shown.ts'

/** A memory comes in a block after at most so many more messages for each memory before it. */
const SAID_BETWEEN = 4

export class Talks {
  #held: { readonly revision: number; readonly of: string; readonly moments: Moments } | null = null

  constructor(readonly shown: Shown) {}

  /** The events and messages of some scopes. Documents that stayed the same are the same objects. */
  moments(scopes: readonly string[], which: ReadonlySet<Moment['kind']>): Moments {
    const { revision } = this.shown.replica
    const of = [...which, ...scopes].join('\n')
    if (this.#held?.revision !== revision || this.#held.of !== of) {
      const before = new Map(this.#held?.moments.told.map(one => [one.document.id, one.document]))
      const { told, missing } = momentsOf(this.shown, scopes, which)
      const kept = told.map(({ moment, document }) => {
        const old = before.get(document.id)
        const isSame = old !== undefined && old.text === document.text && old.header === document.header && old.at === document.at
        return { moment, document: isSame ? old : document }
      })
      this.#held = { revision, of, moments: { told: kept, missing } }
    }
    return this.#held.moments
  }

  /** Whether these scopes may have an event or a message. */
  mayBeIn(scopes: readonly string[]): boolean {
    return mayHaveMoments(this.shown, scopes)
  }

  /** The lines of a block that says so much already. */
  talk(known: string): Talk {
    return new Talk(known)
  }

  /**
   * Memories and lines of what was said, the best first. `answer`: the search of both. Scores of two searches say nothing of each
   * other, so a memory comes where that search has it, and at the latest after some lines for each memory before it.
   */
  inOrder(memories: readonly Memory[], answer: Recall, query: string, { layout = 'index', running = '' }: BlockHow): Match[] {
    const said = answer.moments.filter(({ moment }) => moment.own && (running === '' || moment.session !== running)).slice(0, SAID_OF(layout))
    const [sought, answered] = [soughtBy(query), answeredBy(said)]
    const places = new Map(answer.hits.map(hit => [entryName(hit.reading.key, hit.reading.scope), hit.place]))
    const lines = said.map(({ moment, order }, at): [place: number, kind: number, match: Match] => {
      const mark = moment.event === null ? `${moment.scope}\n${order}` : lineOf(moment.event)
      return [at, 1, saidLine({ at: moment.at, order, when: whenOf(moment), who: moment.type, text: saidBy(moment), mark, asked: answered.get(order) ?? '' }, sought)]
    })
    const between = memories.map((memory, at): [place: number, kind: number, match: Match] => {
      const place = places.get(`m/${memory.place}`)
      const better = place === undefined ? said.length : said.filter(one => one.place < place).length
      return [Math.min(SAID_BETWEEN * at, better), 0, memory]
    })
    return [...lines, ...between].sort(([a, one], [b, other]) => a - b || one - other).map(([, , match]) => match)
  }

  /** How many hits are looked at for messages and events. */
  looked({ layout = 'index', running = '' }: BlockHow): number {
    return LOOKED_OF(layout) + (running === '' ? 0 : SAID_OF('index'))
  }
}

/** By its order what a message of an agent answers: the user's message that was found before it in its session. */
function answeredBy(said: readonly MomentHit[]): ReadonlyMap<number, string> {
  const answered = new Map<number, string>()
  let asked: Moment | null = null
  for (const { moment, order } of [...said].sort((a, b) => a.order - b.order)) {
    if (moment.event === null && moment.type === 'user') asked = moment
    else if (asked !== null && asked.scope === moment.scope && asked.session === moment.session) answered.set(order, asked.text)
  }
  return answered
}
