// A whole published vault, read with nothing but a key: anchor, ring, names, heads, join, view (FORMAT.md 7 and all before).

import { Refused, compare, greatest, hex, join, need, refuse, sha256, unlessRefused } from './bytes.mjs'
import { RAW, cidOf, folderBlock, folderOfOne, ipnsName } from './content.mjs'
import { newest, readRecord, target } from './ipns.mjs'
import { idOf } from './keys.mjs'
import { openKeyring, parseKeyring } from './ring.mjs'
import { buildTree, checkedState, joinStates, nodePath, readCommit, readName, readTree } from './state.mjs'
import { NODE } from './sealed.mjs'
import { cardOf, ownView, timeline, view } from './view.mjs'

const MOST_RECORDS = 8

export const pinName = anchor => `ipfsmem-${hex(sha256(join('ipfsmem/v1/pin', [0], anchor))).slice(0, 16)}`

/** Everything that is at hand: blocks, records by name, roots by pin name; and the key, and which kind of vault it asks for. */
export class Reader {
  constructor({ keys, plain, blocks, names, pins }) {
    Object.assign(this, { keys, plain, blocks, pins })
    this.records = new Map()
    for (const [name, bytes] of Object.entries(names)) this.offer(name, bytes)
    this.inside = plain ? 'memory/.ipfsmem/' : ''
  }

  /** A record from any channel; what its name did not sign is passed over. */
  offer(name, bytes) {
    const record = unlessRefused(() => readRecord(name, bytes))
    if (record) this.records.set(name, newest([record, this.records.get(name)].filter(Boolean)))
  }

  /** The root that a name leads to, through other names; null where it leads nowhere. */
  follow(publicKey) {
    let name = ipnsName(publicKey)
    for (let steps = 0; steps < MOST_RECORDS; steps++) {
      const record = this.records.get(name)
      const to = record && unlessRefused(() => target(record))
      if (!to) return null
      if (to.cid) return to.cid
      name = to.name
    }
    return null
  }

  /** The ring under a root, and its bytes; null when there is none that can be read. */
  keyringAt(root) {
    return unlessRefused(() => {
      const top = this.blocks.at(root, 'keyring.json')
      const bytes = top === undefined ? this.blocks.read(root, 'memory/.ipfsmem/keyring.json') : this.blocks.file(top)
      return { bytes, file: parseKeyring(bytes) }
    })
  }

  /** The records that a root under an anchor's pin name brings, when it counts (7, "Anchor roots"). */
  takeAnchorRoot(root) {
    unlessRefused(() => {
      const files = this.blocks.folder(root)
      need(files !== null && files.has('keyring.json'), 'format')
      const ring = this.blocks.file(files.get('keyring.json'))
      const others = [...files].filter(([name]) => name !== 'keyring.json')
      need(others.length >= 1 && others.length <= MOST_RECORDS && others.every(([name]) => name.endsWith('.ipns')), 'format')
      const records = others.map(([name, cid]) => [name.slice(0, -5), this.blocks.file(cid)])
      const read = new Map(records.map(([name, bytes]) => [name, readRecord(name, bytes)]))
      let name = ipnsName(this.keys.head)
      let to
      for (let steps = 0; steps <= read.size && !to?.cid; steps++) {
        need(read.has(name), 'format', 'records that do not lead on')
        to = target(read.get(name))
        need(to !== null, 'format', 'a record that leads nowhere')
        name = to.name ?? name
      }
      need(to.cid === folderOfOne(ring), 'format', 'the records lead to another ring')
      this.blocks.add(to.cid, folderBlock(ring))
      this.blocks.add(cidOf(RAW, ring), ring)
      for (const [key, bytes] of records) this.offer(key, bytes)
    })
  }

  /** The vault that this key signed for; refused where there is none, or only one of the other kind. */
  firstRing() {
    const listed = this.pins[pinName(this.keys.head)] ?? []
    for (const root of listed) this.takeAnchorRoot(root)
    const anchor = this.follow(this.keys.head)
    const roots = [...(anchor ? [anchor] : []), ...listed]
    let other = false
    let ring = null
    for (const root of roots) {
      const found = this.keyringAt(root)
      if (found === null) continue
      const isFirst = found.file.open.some(one => one.t === 'genesis' && one.roots[0] === hex(this.keys.admin))
      if (!isFirst && root !== anchor) continue
      if (found.file.plain !== this.plain) {
        other = true
        continue
      }
      const opened = unlessRefused(() => openKeyring(found.file, this.keys.boxSecret))
      if (opened === null || opened.shut) continue
      const me = opened.said.members.get(idOf(this.keys.admin))
      if (me?.role !== 'admin') continue
      ring = ring === null ? opened : (unlessRefused(() => ring.join(opened)) ?? ring)
    }
    if (ring === null) refuse(other ? 'other kind' : 'none', 'no vault that this key signed for')
    return ring
  }

  /** Roots that may be heads: those of device names, and those of the pin list of the first root's anchor. */
  places(ring) {
    const said = ring.said
    const devices = [...said.members.values()].map(one => this.follow(Buffer.from(one.sign, 'hex')))
    const first = said.members.get(idOf(Buffer.from(said.first, 'hex')))
    const listed = first?.anchor ? (this.pins[pinName(Buffer.from(first.anchor, 'hex'))] ?? []) : []
    const named = [...new Set(devices.filter(Boolean))]
    return { named, listed: [...new Set(listed)].filter(root => !named.includes(root)) }
  }

  roots(ring) {
    const { named, listed } = this.places(ring)
    return [...named, ...listed]
  }

  /** The ring joined with what anchors and verified heads bring, until nothing new is learned. */
  grow(ring) {
    for (let before = ''; before !== ring.mark; ) {
      before = ring.mark
      const anchors = ring.said.anchors().map(anchor => this.follow(Buffer.from(anchor, 'hex')))
      for (const root of anchors.filter(Boolean)) {
        const theirs = this.scratch(root, ring)
        if (theirs && this.blocks.folder(root).size === 1) ring = theirs.ring
      }
      for (const root of this.roots(ring)) {
        const theirs = this.scratch(root, ring)
        if (theirs && unlessRefused(() => readCommit(this.head(root), theirs.ring, theirs.bytes))) ring = theirs.ring
      }
    }
    return ring
  }

  /** Ours joined with the ring of a root, on trial. */
  scratch(root, ring) {
    const found = this.keyringAt(root)
    if (found === null) return null
    return unlessRefused(() => {
      need(hex(found.file.tag) === hex(ring.tag), 'vault', 'of another vault')
      return { bytes: found.bytes, ring: ring.join(openKeyring(found.file, this.keys.boxSecret, ring.readable)) }
    })
  }

  head(root) {
    return this.blocks.read(root, `${this.inside}${this.plain ? 'commit.json' : 'head.ipm'}`)
  }

  /** The verified commit of a root, with the ring that it was verified with. */
  commit(root, ring) {
    const theirs = this.scratch(root, ring)
    need(theirs !== null, 'ring', 'its ring is not of this vault')
    return { root, joined: theirs.ring, ...readCommit(this.head(root), theirs.ring, theirs.bytes) }
  }

  /** The state that a commit names, read whole and checked. */
  state(commit, ring) {
    const key = commit.joined.readable.find(one => one.id === commit.ek)
    const entries = readTree(commit.state, (prefix, hash) => {
      const path = `${this.inside}${nodePath(prefix)}.${this.plain ? 'json' : 'ipm'}`
      const stored = unlessRefused(() => this.blocks.read(commit.root, path))
      if (stored === null || this.plain) return stored
      return unlessRefused(() => key.open(NODE, prefix, stored))
    })
    return checkedState(entries, commit, ring)
  }

  /** The plain bytes at a location, or null: not here, another size, does not open. */
  object(ring, name, loc) {
    return unlessRefused(() => {
      const stored = this.blocks.object(loc[1])
      need(stored.length === loc[2], 'open')
      if (this.plain) return stored
      const { type, ctx } = readName(name)
      const key = ring.readable.find(one => one.id === loc[0])
      need(key !== undefined, 'open')
      return key.open(type, ctx, stored)
    })
  }

  /** All of it. */
  read() {
    const ring = this.grow(this.firstRing())
    const verdicts = {}
    const heads = []
    let state = { entries: new Map(), seen: new Map() }
    const epochs = new Map(ring.readable.map(key => [key.id, key.epoch]))
    const passes = (name, value, field, loc) => {
      const data = this.object(ring, name, loc)
      return data !== null && (field === 'loc' ? hex(sha256(data)) === value.body : hex(sha256(data)).startsWith(value.b[0]))
    }
    const failed = (root, part, error) => {
      if (!(error instanceof Refused)) throw error
      verdicts[root] = { damaged: 'damaged', missing: 'damaged', held: 'held' }[error.kind] ?? `refused: ${part}`
    }
    const { named, listed } = this.places(ring)
    for (const roots of [named, listed]) {
      let left = roots.flatMap(root => {
        try {
          return [this.commit(root, ring)]
        } catch (error) {
          failed(root, 'head', error)
          return []
        }
      })
      while (left.length) {
        const { top, below } = tops(left)[0]
        left = left.filter(one => one !== top)
        try {
          state = joinStates(state, this.state(top, ring), passes, loc => [epochs.get(loc[0]) ?? 0, ...loc], id => ring.said.letIn(id))
        } catch (error) {
          failed(top.root, 'state', error)
          continue
        }
        for (const one of [top, ...below]) verdicts[one.root] = one.lacking.length ? 'joined in part' : 'joined'
        heads.push(top, ...below)
        left = left.filter(one => !below.includes(one))
      }
    }
    need(heads.length > 0, 'damaged', 'no head can be read whole')
    const { digest, nodes } = buildTree(state.entries)
    const shown = this.views(ring, state)
    const root = rootOf(heads, digest, state)
    return { ring, state, verdicts, digest, root, layout: root && this.layout(root, state, nodes), ...shown }
  }

  views(ring, state) {
    const { persons } = ring.said
    const me = persons.get(idOf(this.keys.admin))
    const isOwn = (dot, value) =>
      persons.get(dot.slice(0, 16)) === me && (value.of === undefined || (value.of !== 'foreign' && persons.get(value.of) === me))
    const scopes = {}
    const memories = {}
    const segments = new Map()
    for (const [name, entry] of [...state.entries].sort((a, b) => compare([a[0]], [b[0]]))) {
      const { kind, scope, key, ctx, dev } = readName(name)
      const at = loc => this.object(ring, name, loc)
      const fetch = body => {
        for (const value of Object.values(entry)) {
          const data = value.body === body ? at(value.loc) : null
          if (data !== null && hex(sha256(data)) === body) return data
        }
        return null
      }
      if (kind === 'c') scopes[scope] = cardOf(entry, fetch)
      if (kind === 'm') {
        const base = value => (value.base ? at(value.base) : null)
        const text = one => fetch(one.body)?.toString() ?? null
        const said = ({ shown, merged, forgotten, conflicts, hidden, notFetched }) => ({
          shown: shown?.toString() ?? null,
          merged,
          forgotten,
          conflicts: conflicts.map(one => ({ file: one.file, text: text(one) })),
          hidden: hidden.map(text),
          not_fetched: notFetched
        })
        const all = said(view(key, entry, fetch, base))
        const own = ownView(key, entry, isOwn, fetch, base)
        const mine = { ...said(own), others: own.others.map(one => ({ file: one.file, text: text(one) })), unheeded: own.unheeded.length }
        memories[ctx] = { ...all, own: mine.others.length || mine.unheeded ? mine : null }
      }
      if (kind === 't') {
        const texts = Object.values(entry).map(value => ({ dev, data: fetch(value.body) ?? Buffer.alloc(0) }))
        segments.set(scope, [...(segments.get(scope) ?? []), ...texts])
      }
    }
    const events = Object.fromEntries([...segments].map(([scope, all]) => [scope, timeline(all)]))
    return { me, scopes, memories, events }
  }

  /** Whether the files of a root are exactly those that the state asks for, at the places that the rule gives them. */
  layout(root, state, nodes) {
    const files = new Map()
    const walk = (cid, path) => {
      const names = this.blocks.folder(cid)
      if (names === null) files.set(path, cid)
      else for (const [name, inner] of names) walk(inner, path === '' ? name : `${path}/${name}`)
    }
    walk(root, '')
    const wanted = new Set(['keyring.json', this.plain ? 'commit.json' : 'head.ipm'])
    for (const prefix of nodes.keys()) wanted.add(`${nodePath(prefix)}.${this.plain ? 'json' : 'ipm'}`)
    const objects = new Set()
    for (const entry of state.entries.values()) {
      for (const value of Object.values(entry)) for (const loc of [value.loc, value.base]) if (loc) objects.add(loc[1])
    }
    const shown = new Set()
    if (this.plain) for (const [path, cid] of files) if (!path.startsWith(this.inside)) shown.add(hex(sha256(this.blocks.file(cid))))
    for (const path of objectPaths([...objects].filter(hash => !shown.has(hash)))) wanted.add(path)
    const found = [...files.keys()].filter(path => path.startsWith(this.inside)).map(path => path.slice(this.inside.length))
    return found.length === wanted.size && found.every(path => wanted.has(path))
  }
}

/** Heads that no other one of these holds, by clock and hash, each with those that it holds: joined already when it is (7). */
function tops(heads) {
  const byHash = new Map(heads.map(one => [one.hash, one]))
  const below = one => (one.lacking.length ? [] : one.prev.map(hash => byHash.get(hash)).filter(other => other && covers(one, other)))
  const held = new Set(heads.flatMap(below))
  const reached = one => below(one).flatMap(other => [other, ...reached(other)])
  return heads
    .filter(one => !held.has(one))
    .sort((a, b) => compare([a.h, a.hash], [b.h, b.hash]))
    .map(top => ({ top, below: [...new Set(reached(top))] }))
}

function covers(one, other) {
  return [...other.seen].every(([dev, pair]) => {
    const mine = one.seen.get(dev)
    return mine && (mine.n > pair.n || (mine.n === pair.n && mine.r === pair.r))
  })
}

/** Where the rule of prefix trees puts objects. */
function objectPaths(hashes) {
  const names = hashes.map(hash => hash.slice(0, 40))
  const place = (all, depth) =>
    all.length <= 64 || depth === 16
      ? all.map(name => [...name.slice(0, depth), name].join('/'))
      : [...'0123456789abcdef'].flatMap(digit =>
          place(
            all.filter(name => name[depth] === digit),
            depth + 1
          )
        )
  return place(names, 0).map(path => `o/${path}`)
}

/** The root that all devices end on: of the heads that say what the join says, that of the greatest commit. */
function rootOf(heads, digest, state) {
  const ctx = [...state.seen].map(([dev, pair]) => `${dev} ${pair.n} ${pair.r}`).sort().join()
  const same = heads.filter(
    one => one.state === digest && [...one.seen].map(([dev, pair]) => `${dev} ${pair.n} ${pair.r}`).sort().join() === ctx
  )
  return same.length ? greatest(same, one => [one.hash, one.root]).root : null
}

