/** Untrusted Markdown as a harmless part of the page: nothing remote is loaded, nothing runs, nothing looks like the page. */

import DOMPurify from 'dompurify'
import { marked, Tokenizer, type Tokens } from 'marked'

/** Maximum characters of a text that are rendered; the rest is reported. */
const MOST = 200_000

DOMPurify.addHook('afterSanitizeAttributes', node => {
  if (node.nodeName === 'A') {
    node.setAttribute('target', '_blank')
    node.setAttribute('rel', 'noopener noreferrer')
  }
  // A model gets collapsed text too.
  if (node.nodeName === 'DETAILS') node.setAttribute('open', '')
  if (node.nodeName === 'IMG' && !(node.getAttribute('src') ?? '').startsWith('data:image/')) {
    const words = node.ownerDocument.createElement('span')
    words.className = 'left-out'
    words.textContent = `[image not loaded: ${node.getAttribute('alt') || node.getAttribute('src') || ''}]`
    node.replaceWith(words)
  }
})

/** Nested quotes that are only expensive to render. */
const DEEP = /^[ \t]*(?:>[ \t]*){50}/m

/**
 * Limits in milliseconds and in element tags, beyond which a text is shown unformatted; and characters of a list that are parsed together.
 */
const LONGEST = 2_000
const MOST_TAGS = 20_000
const LIST = 10_000

/**
 * Parses Markdown within a time limit: some texts of a few kilobytes take quadratic time. Two of these methods are called first at each
 * step between blocks and within a line; a whole list is one step.
 */
class Hurried extends Tokenizer {
  readonly #until = performance.now() + LONGEST

  override space(src: string): Tokens.Space | undefined {
    this.#look()
    return super.space(src)
  }

  override escape(src: string): Tokens.Escape | undefined {
    this.#look()
    return super.escape(src)
  }

  override list(src: string): Tokens.List | undefined {
    this.#look()
    return super.list(src.length > LIST ? src.slice(0, src.lastIndexOf('\n', LIST) + 1 || LIST) : src)
  }

  #look(): void {
    if (performance.now() > this.#until) throw new RangeError('this text takes too long to format')
  }
}

/** Render a text; one that cannot be rendered is shown unformatted. */
export function rendered(text: string): DocumentFragment {
  const some = text.length > MOST ? `${text.slice(0, MOST)}\n\n…` : text
  try {
    if (!DEEP.test(some)) {
      const html = marked.parse(some, { async: false, gfm: true, tokenizer: new Hurried() })
      if (html.split('<', MOST_TAGS + 1).length <= MOST_TAGS) return harmless(html)
    }
  } catch {
    // Too deeply nested for the parser, or too slow: shown as text.
  }
  const plain = document.createDocumentFragment()
  plain.append(Object.assign(document.createElement('pre'), { textContent: some }))
  return plain
}

/** Markdown syntax that is not words: entities, numbers of lists, task boxes, the language of a code block, tag names. */
const MARKS = /&#?\w+;|^(?:[ \t>]*(?:\d+[.)]|[-*+](?: \[[ xX]\])?)(?=\s))+|^[ \t>]*(?:`{3,}|~{3,})[\w+#.-]{0,20}|<\/?[a-z][\w-]*/gim
const WORD = /[\p{L}\p{N}]+/gu
/** Invisible characters: format, tags, variation selectors. */
const INVISIBLE = /[\p{Cf}\u{fe00}-\u{fe0f}\u{e0100}-\u{e01ef}\u{3164}\u{115f}\u{1160}]/gu

/**
 * Return how many words of a text, and invisible characters, its rendered form lacks: comments, removed elements, titles of links. A model
 * gets them all the same.
 */
export function unseen(text: string, made: Node): number {
  const shown = new Map<string, number>()
  const add = (some: string): void => {
    for (const [word] of some.matchAll(WORD)) shown.set(word, (shown.get(word) ?? 0) + 1)
  }
  add(made.textContent ?? '')
  if (made instanceof DocumentFragment || made instanceof Element)
    for (const one of made.querySelectorAll('a[href], img')) add(`${one.getAttribute('href') ?? one.getAttribute('alt') ?? ''} ${decoded(one.getAttribute('href') ?? '')}`)
  let missing = (text.match(INVISIBLE) ?? []).length
  for (const [word] of text.replace(MARKS, ' ').matchAll(WORD)) {
    const left = shown.get(word) ?? 0
    if (left === 0) missing++
    else shown.set(word, left - 1)
  }
  return missing
}

function decoded(url: string): string {
  try {
    return decodeURIComponent(url)
  } catch {
    return ''
  }
}

function harmless(html: string): DocumentFragment {
  return DOMPurify.sanitize(html, {
    RETURN_DOM_FRAGMENT: true,
    USE_PROFILES: { html: true },
    FORBID_TAGS: ['style', 'form', 'input', 'button', 'textarea', 'select', 'video', 'audio', 'source', 'iframe', 'dialog', 'template'],
    FORBID_ATTR: ['style', 'id', 'class', 'name', 'srcset', 'background', 'popover', 'hidden', 'color', 'bgcolor', 'size', 'face']
  })
}
