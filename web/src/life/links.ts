/** Links from one memory to another in its text: `[[key]]`, `[[Name]]`, `[[key|words]]`, `[[key#part]]`, and `[words](key.md)`. */

import { uncased } from '../recall/terms.ts'
import { split, trim, WHITE } from '../core/white.ts'

const LINK = `\\[\\[([^\\[\\]\\n|#]{1,200})(?=\\]\\]|[|#][^\\[\\]\\n]*\\]\\])|\\]\\((?:\\./)?([a-z0-9][a-z0-9_-]{0,63})\\.md(?=\\)|#[^()${WHITE}]*\\))`
const ANY = new RegExp(LINK, 'gu')
const FIRST = new RegExp(`^(?:${LINK})`, 'u')

/** Return the targets of the links in a text, in order. A path into another folder is not a link. */
export const links = (text: string): string[] => [...text.matchAll(ANY)].map(([, wiki, file]) => trim(wiki ?? file ?? '')).filter(Boolean)

/** Fold a name for comparison: ignore case and white space. */
export const folded = (name: string): string => split(uncased(name)).join(' ')

/** Return the target of a link, or the text itself. */
export const targetOf = (text: string): string => trim(FIRST.exec(trim(text))?.[1] ?? (text.split(/[|#]/, 1)[0] as string))
