/** Differences of a text from others, by line. */

import { html, type TemplateResult } from 'lit'

/** Return the lines of texts; a text that is not here has none. */
export function others(texts: readonly (string | null)[]): Set<string> {
  return new Set(texts.flatMap(text => (text === null ? [] : text.split('\n'))))
}

/** Mark each line of a text that no other text has. */
export function marked(text: string, elsewhere: ReadonlySet<string>): TemplateResult[] {
  return text.split('\n').map(line => (elsewhere.has(line) || !line.trim() ? html`<span>${line}\n</span>` : html`<mark>${line}</mark>\n`))
}
