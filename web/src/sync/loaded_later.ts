/** A provider whose code is loaded with its first request. */

import { type BlockStore, type NameServer, type Provider, ProviderError, type Reader, type SmallArea } from './provider.ts'

/** What a provider offers, which is known before it is loaded. */
export type Offers = { readonly reads?: boolean; readonly writes?: boolean; readonly names?: boolean; readonly takesTrees?: boolean; readonly small?: boolean }

export function loadedLater(name: string, load: () => Promise<Provider>, { reads = false, writes = false, names = false, takesTrees = false, small = false }: Offers): Provider {
  let loading: Promise<Provider> | null = null
  const get = async <Part>(part: (provider: Provider) => Part): Promise<NonNullable<Part>> => {
    loading ??= load()
    const mine = loading
    try {
      return part(await mine) as NonNullable<Part>
    } catch (error) {
      if (loading === mine) loading = null
      throw new ProviderError(name, false, `the code for ${name} was not loaded: reload the page (${error instanceof Error ? error.message : error})`)
    }
  }
  const reader: Reader = { name, blocks: async cids => (await get(one => one.reader ?? one.store)).blocks(cids) }
  const server: NameServer = {
    name,
    record: async (one, say) => (await get(provider => provider.names)).record(one, say),
    ...(writes ? { putRecord: async (one: string, record: Uint8Array) => (await get(provider => provider.names?.putRecord))(one, record) } : {})
  }
  const store: BlockStore = {
    ...reader,
    takesTrees,
    has: async cids => (await get(one => one.store)).has(cids),
    put: async (root, blocks, pinName) => (await get(one => one.store)).put(root, blocks, pinName),
    pin: async (root, pinName) => (await get(one => one.store)).pin(root, pinName)
  }
  const area: SmallArea = {
    list: async boxes => (await get(one => one.small)).list(boxes),
    get: async asked => (await get(one => one.small)).get(asked),
    put: async (one, data) => (await get(provider => provider.small)).put(one, data),
    remove: async asked => (await get(one => one.small)).remove(asked)
  }
  return { name, ...(small ? { small: area } : {}), ...(reads ? { reader } : {}), ...(names ? { names: server } : {}), ...(writes ? { store } : {}), pins: async pinName => (await get(one => one.pins))(pinName) }
}
