/** Where a text differs from others, by lines. */

import { html, type TemplateResult } from 'lit'

/** The lines of texts; a text that is not here has none. */
export function others(texts: readonly (string | null)[]): Set<string> {
  return new Set(texts.flatMap(text => (text === null ? [] : text.split('\n'))))
}

/** A text with a mark on each line that stands nowhere else. */
export function marked(text: string, elsewhere: ReadonlySet<string>): TemplateResult[] {
  return text.split('\n').map(line => (elsewhere.has(line) || !line.trim() ? html`<span>${line}\n</span>` : html`<mark>${line}</mark>\n`))
}
