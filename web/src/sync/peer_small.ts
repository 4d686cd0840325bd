/** The small objects of another ipfsmem, whose code is loaded when they are used. */

import { isObject, need } from '../core/bytes.ts'
import { rawCid } from '../core/cid.ts'
import { isSmall, needBoxes, needSmallNames, usedSmall } from '../core/small_objects.ts'
import type { Http } from './http.ts'
import { answerOf, blocksOf } from './peer.ts'
import { ProviderError, type SmallArea } from './provider.ts'

/** `base`: the URL of the server, without a final slash. */
export function peerSmall(name: string, base: string, http: Http): SmallArea {
  const post = (path: string, names: readonly string[], what: string): Promise<Response> => http.ask(`${base}/small/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ names }), what })
  return {
    async list(boxes) {
      needBoxes(boxes)
      if (boxes.length === 0) return new Map()
      const answer = await http.ask(`${base}/small?${new URLSearchParams(boxes.map(box => ['box', box]))}`, { what: 'list small objects' })
      const { objects } = answerOf(name, await http.text(answer))
      if (!isObject(objects)) throw new ProviderError(name, false, `${name} returned an unknown list of small objects`)
      return usedSmall(Object.entries(objects), boxes)
    },
    async get(names) {
      needSmallNames(names)
      if (names.length === 0) return new Map()
      const blocks = new Map(blocksOf(name, await http.bytes(await post('read', names, 'read small objects'))))
      return new Map(names.flatMap(one => {
        const data = blocks.get(rawCid(one.slice(-64)).text)
        return data !== undefined && isSmall(one, data) ? [[one, data] as const] : []
      }))
    },
    async put(one, data) {
      need(isSmall(one, data), 'format', 'that is not a small object')
      await http.ask(`${base}/small/${one}`, { method: 'PUT', body: data, what: 'store a small object' })
    },
    async remove(names) {
      needSmallNames(names)
      if (names.length > 0) await http.text(await post('remove', names, 'remove small objects'))
    }
  }
}
