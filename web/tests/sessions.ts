/** Sessions: their names, what their parts come to, how they are told to people, and what is found in them. */

import { utf8 } from '../src/core/bytes.ts'
import { partItems, sessionItems } from '../src/core/session_items.ts'
import { sessionToken } from '../src/core/sessions.ts'
import { asMarkdown, coveredIn, previewOf, titleOf, tokensIn, conversationOf } from '../src/life/conversation.ts'
import { localDay } from '../src/device/days.ts'
import { searched } from '../src/life/session_search.ts'
import type { Judge } from './judging.ts'

type Part = { readonly key: string; readonly file: string }

const files = (parts: readonly Part[]): { key: string; file: Uint8Array }[] => parts.map(one => ({ key: one.key, file: utf8(one.file) }))

export const sessions: Judge = (all, court) => {
  for (const row of all.tokens) court.same(sessionToken(row.session), row.token, row.session)
  for (const row of all.refused_names) court.refuses(() => sessionToken(row.text), row.why)
  for (const row of all.sessions) court.same(sessionItems(row.session, files(row.parts)), row.items, row.name)
  for (const row of all.told) {
    const found = conversationOf(partItems(row.session, files(row.parts)))
    const messages = found.messages.map(({ place, message: { role, text, tools } }) => ({ at: place[0], role, text, tools, own: !found.pending.has(place) }))
    const got = [titleOf(found), previewOf(found), messages, tokensIn(found), coveredIn(found), found.summary?.text ?? '', found.summary?.by ?? '', !found.isSummaryPending, asMarkdown(found)]
    court.same(got, [row.title, row.preview, row.messages, row.tokens, row.covered, row.summary, row.summary_by, row.summary_own, row.markdown], row.name)
  }
  const { said, questions, today } = all.searched
  const known = new Map((Object.entries(said) as [string, Part[]][]).map(([session, parts]) => [session, conversationOf(partItems(session, files(parts)))]))
  for (const row of questions) court.same(searched(known, row.query, row.limit, today, localDay), row.hits, row.query)
}
