/** Search of messages in all sessions, ranked like recall. */

import { Ranking } from '../recall/ranking.ts'
import type { SessionHit } from '../results.ts'
import { LAST, type Conversation } from './conversation.ts'
import type { Message } from './messages.ts'

/**
 * Return the messages that share a word with the query, best first. Summaries are not searched: the messages that they cover are. `dayOf`:
 * the person's local day of a time, and `today`, in days since 1970.
 */
export function searched(sessions: ReadonlyMap<string, Conversation>, query: string, limit: number, today: number, dayOf: (at: number) => number): SessionHit[] {
  const said: { session: string; at: number; message: Message; own: boolean }[] = []
  for (const [session, { messages, pending }] of sessions) {
    for (const { place, message } of messages) if (message.text !== '' && message.role !== 'system') said.push({ session, at: place[0], message, own: !pending.has(place) })
  }
  const documents = said.map(({ at, message: { text } }, n) => ({ id: String(n).padStart(9, '0'), text, header: '', group: '', at: at < LAST ? dayOf(at) : null, salience: null }))
  return new Ranking(documents).rank(query, today).slice(0, limit).map(({ id, score }) => {
    const { session, at, message, own } = said[Number(id)] as (typeof said)[number]
    return { session, at, role: message.role, text: message.text, score: Math.round(score * 1000) / 1000, own }
  })
}
