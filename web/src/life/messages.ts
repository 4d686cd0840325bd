/**
 * One item of a session as a message: its role, text, tool calls, and the calls that it answers.
 *
 * Four shapes are known, each as its program writes it: plain (`role`, `content`, also with `tool_calls`), items of OpenAI's responses
 * (`type`), Anthropic's content blocks, and PydanticAI's `kind` with `parts`. A plain one without a role is a user's; `text` may replace
 * `content`, and `speaker` replace `name`, as in transcripts of people. Any other shape is an empty message.
 */

import { isObject } from '../core/bytes.ts'
import { split } from '../core/white.ts'

export type Role = 'user' | 'assistant' | 'system' | 'tool' | ''
export type Item = Readonly<Record<string, unknown>>
/**
 * `answers`: the ids of the calls that it answers, '' for one without an id. `speaker`: which of several users or assistants speaks; '' if
 * unknown.
 */
export type Message = { readonly role: Role; readonly text: string; readonly tools: readonly string[]; readonly answers: readonly string[]; readonly speaker: string }

const ROLES = new Map<unknown, Role>([
  ['user', 'user'], ['human', 'user'], ['assistant', 'assistant'], ['ai', 'assistant'], ['model', 'assistant'],
  ['system', 'system'], ['developer', 'system'], ['tool', 'tool'], ['function', 'tool']
])
/** Characters of a speaker's name. */
const NAME = 64
const ANSWERS: readonly unknown[] = ['tool-return', 'retry-prompt', 'builtin-tool-return']

export function readMessage(item: Item): Message {
  if (item['kind'] === 'request' || item['kind'] === 'response') return ofPydanticAi(item)
  const { type } = item
  if (typeof type === 'string' && !Object.hasOwn(item, 'role')) return ofResponses(item, type)
  const text = words(Object.hasOwn(item, 'content') ? item['content'] : item['text'])
  const role = Object.hasOwn(item, 'role') ? (ROLES.get(item['role']) ?? '') : text === '' ? '' : 'user'
  if (role === '') return said('')
  const tools = objects(item['tool_calls']).map(call => textOf(isObject(call['function']) ? call['function']['name'] : ''))
  const answers: string[] = []
  for (const block of objects(item['content'])) {
    if (block['type'] === 'tool_use') tools.push(textOf(block['name']))
    else if (block['type'] === 'tool_result') answers.push(textOf(block['tool_use_id']))
  }
  if (role === 'tool') answers.push(textOf(item['tool_call_id']))
  // The name of a tool's answer is that of the tool.
  const speaker = role === 'user' || role === 'assistant' ? textOf(item['name']) || textOf(item['speaker']) : ''
  return said(role, text, tools, answers, [...split(speaker).join(' ')].slice(0, NAME).join(''))
}

/** Tell whether it starts a turn: a message of a user, not the answer of a tool. */
export const isRequest = (one: Message): boolean => one.role === 'user' && one.answers.length === 0

function ofPydanticAi(item: Item): Message {
  const [found, tools, answers]: [string[], string[], string[]] = [[], [], []]
  let isSaid = false
  for (const part of objects(item['parts'])) {
    const kind = part['part_kind']
    if (kind === 'tool-call' || kind === 'builtin-tool-call') tools.push(textOf(part['tool_name']))
    else if (ANSWERS.includes(kind) && (kind !== 'retry-prompt' || isGiven(part['tool_name']))) {
      answers.push(textOf(part['tool_call_id']))
      found.push(words(part['content']))
    } else if (kind === 'user-prompt' || kind === 'text' || kind === 'retry-prompt') {
      isSaid = true
      found.push(words(part['content']))
    }
  }
  // A tool run by the model's own provider is called and answered in one response.
  if (item['kind'] === 'response') return said('assistant', joined(found), tools, answers)
  return said(isSaid ? 'user' : answers.length > 0 ? 'tool' : 'system', joined(found), [], answers)
}

function ofResponses(item: Item, type: string): Message {
  if (type.endsWith('_call_output')) return said('tool', words(item['output']), [], [textOf(item['call_id'])])
  if (type.endsWith('_call')) return said('assistant', '', [textOf(item['name']) || type.slice(0, -'_call'.length)])
  return said(type === 'reasoning' ? 'assistant' : '')
}

/** A lone surrogate, left by programs that cut a text inside an emoji, becomes U+FFFD, as in Python. */
const said = (role: Role, text = '', tools: readonly string[] = [], answers: readonly string[] = [], speaker = ''): Message => ({
  role, text: text.toWellFormed(), tools: tools.filter(Boolean).map(one => one.toWellFormed()), answers, speaker: speaker.toWellFormed()
})

/** The text of a content: itself, or that of its blocks. */
function words(content: unknown): string {
  if (typeof content === 'string') return content
  if (isObject(content)) return ofBlock(content)
  if (!Array.isArray(content)) return ''
  return joined(content.map(one => (typeof one === 'string' ? one : isObject(one) ? ofBlock(one) : '')))
}

const ofBlock = (block: Item): string => textOf(block['text']) || nested(block['content'])

/** The text of blocks in a block, one level deep; deeper ones are ignored. */
const nested = (content: unknown): string => (typeof content === 'string' ? content : joined(objects(content).map(block => textOf(block['text']))))

const joined = (texts: readonly string[]): string => texts.filter(Boolean).join('\n')
const objects = (value: unknown): Item[] => (Array.isArray(value) ? value.filter(isObject) : [])
const textOf = (value: unknown): string => (typeof value === 'string' ? value : '')
/** Tell whether a value is true in Python. */
const isGiven = (value: unknown): boolean => Boolean(value) && !(Array.isArray(value) && value.length === 0) && !(isObject(value) && Object.keys(value).length === 0)
