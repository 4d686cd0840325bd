/** Links from one memory to another in its text: `[[key]]`, `[[Name]]`, `[[key|words]]`, `[[key#part]]`, and `[words](key.md)`. */

import { uncased } from '../recall/terms.ts'
import { split, trim, WHITE } from '../core/white.ts'

const LINK = `\\[\\[([^\\[\\]\\n|#]{1,200})(?=\\]\\]|[|#][^\\[\\]\\n]*\\]\\])|\\]\\((?:\\./)?([a-z0-9][a-z0-9_-]{0,63})\\.md(?=\\)|#[^()${WHITE}]*\\))`
const ANY = new RegExp(LINK, 'gu')
const FIRST = new RegExp(`^(?:${LINK})`, 'u')

/** What the links of a text name, in order. A path into another folder is none. */
export const links = (text: string): string[] => [...text.matchAll(ANY)].map(([, wiki, file]) => trim(wiki ?? file ?? '')).filter(Boolean)

/** What two names have in common that mean the same: upper and lower case and white space do not matter. */
export const folded = (name: string): string => split(uncased(name)).join(' ')

/** What a text names: the target of the link that it is, else itself. */
export const targetOf = (text: string): string => trim(FIRST.exec(trim(text))?.[1] ?? (text.split(/[|#]/, 1)[0] as string))
