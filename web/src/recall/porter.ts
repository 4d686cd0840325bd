/** The stem of an English word: the algorithm of M. F. Porter (1980) with its later changes. */

const SECOND: Readonly<Record<string, string>> = {
  ational: 'ate', tional: 'tion', enci: 'ence', anci: 'ance', izer: 'ize', logi: 'log', bli: 'ble', alli: 'al', entli: 'ent', eli: 'e',
  ousli: 'ous', ization: 'ize', ation: 'ate', ator: 'ate', alism: 'al', iveness: 'ive', fulness: 'ful', ousness: 'ous', aliti: 'al',
  iviti: 'ive', biliti: 'ble'
}
const THIRD: Readonly<Record<string, string>> = { icate: 'ic', ative: '', alize: 'al', iciti: 'ic', ical: 'ic', ful: '', ness: '' }
const FOURTH: Readonly<Record<string, string>> = Object.fromEntries(
  'al ance ence er ic able ible ant ement ment ent ion ou ism ate iti ous ive ize'.split(' ').map(ending => [ending, ''])
)
const LONGEST = 7

/** The word with v for each vowel and c for each consonant; y is a vowel after a consonant. */
function shapeOf(word: string): string {
  let shape = ''
  for (const letter of word) shape += 'aeiou'.includes(letter) || (letter === 'y' && shape.endsWith('c')) ? 'v' : 'c'
  return shape
}

/** Number of times that consonants follow vowels. */
const measure = (word: string): number => shapeOf(word).match(/v(?=c)/g)?.length ?? 0
/** Tell whether it ends with consonant, vowel, consonant, the last not w, x or y. */
const isShort = (word: string): boolean => shapeOf(word).endsWith('cvc') && !'wxy'.includes(word.at(-1) as string)
const hasVowel = (word: string): boolean => shapeOf(word).includes('v')

/** Replace the longest matching ending, if the stem before it has at least this measure. */
function replaced(word: string, endings: Readonly<Record<string, string>>, least: number): string {
  for (let length = LONGEST; length > 1; length--) {
    const ending = word.slice(-length)
    if (word.length <= length || !Object.hasOwn(endings, ending)) continue
    const head = word.slice(0, -length)
    return measure(head) < least || (ending === 'ion' && !'st'.includes(head.at(-1) as string)) ? word : head + endings[ending]
  }
  return word
}

/** The stem of a lower-case word; a word of one or two letters is its own. */
export function stem(term: string): string {
  let word = term
  if (word.length < 3) return word
  if (/(?:sses|ies)$/.test(word)) word = word.slice(0, -2)
  else if (/[^s]s$|^s$/.test(word)) word = word.slice(0, -1)
  let cut = ''
  if (word.endsWith('eed')) word = measure(word.slice(0, -3)) ? word.slice(0, -1) : word
  else if (word.endsWith('ed') && hasVowel(word.slice(0, -2))) cut = word.slice(0, -2)
  else if (word.endsWith('ing') && hasVowel(word.slice(0, -3))) cut = word.slice(0, -3)
  if (cut !== '') {
    word = cut
    if (/(?:at|bl|iz)$/.test(word)) word += 'e'
    else if (word.at(-1) === word.at(-2) && !'lsz'.includes(word.at(-1) as string) && shapeOf(word).endsWith('c')) word = word.slice(0, -1)
    else if (measure(word) === 1 && isShort(word)) word += 'e'
  }
  if (word.endsWith('y') && hasVowel(word.slice(0, -1))) word = `${word.slice(0, -1)}i`
  word = replaced(replaced(replaced(word, SECOND, 1), THIRD, 1), FOURTH, 2)
  if (word.endsWith('e')) {
    const head = word.slice(0, -1)
    if (measure(head) > 1 || (measure(head) === 1 && !isShort(head))) word = head
  }
  return word.endsWith('ll') && measure(word.slice(0, -1)) > 1 ? word.slice(0, -1) : word
}
