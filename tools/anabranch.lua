-- Wireshark reads the datagrams of `anabranch serve` and `send` (docs/reference/wire.md, header version 3).
--
--   tshark -X lua_script:tools/anabranch.lua -r capture.pcapng
--
-- or put this file into Wireshark's folder of personal Lua plugins. UDP datagrams that look like ours are taken on any port.

local kinds = { "hello", "welcome", "data", "answer", "probe", "echo", "bye", "retry" }
-- Bytes that a datagram of a kind has at least, and whether it has no more.
local least = { 96, 64, 64, 56, 28, 28, 26, 56 }
local exact = { false, true, false, true, false, true, true, true }

local p = Proto("anabranch", "Anabranch on the wire")
local f = p.fields
f.version = ProtoField.uint8("anabranch.version", "Version")
f.kind = ProtoField.uint8("anabranch.kind", "Kind", base.DEC, kinds)
f.flags = ProtoField.uint8("anabranch.flags", "Flags", base.HEX)
f.ack_request = ProtoField.bool("anabranch.ack_request", "Answer at once", 8, nil, 1)
f.checked = ProtoField.bool("anabranch.checked", "Payload has a CRC32C", 8, nil, 4)
f.ecn = ProtoField.bool("anabranch.ecn", "Marked", 8, nil, 1)
f.cnp = ProtoField.bool("anabranch.cnp", "Congestion notification", 8, nil, 2)
f.nack = ProtoField.bool("anabranch.nack", "Came without payload or out of order", 8, nil, 4)
f.check = ProtoField.uint32("anabranch.check", "CRC32C of the header", base.HEX)
f.sealed = ProtoField.bool("anabranch.sealed", "Authenticated", 8, nil, 128)
f.number = ProtoField.uint64("anabranch.number", "Packet number")
f.mac = ProtoField.bytes("anabranch.mac", "MAC")
f.payload_mac = ProtoField.bytes("anabranch.payload_mac", "MAC of the payload")
f.connection = ProtoField.uint32("anabranch.connection", "Connection", base.HEX)
f.magic = ProtoField.string("anabranch.magic", "Word")
f.sender = ProtoField.uint32("anabranch.sender", "Connection of the sender (0: refused)", base.HEX)
f.mtu = ProtoField.uint16("anabranch.mtu", "Payload of a full packet")
f.span = ProtoField.uint32("anabranch.span", "Packets that may be under way")
f.nonce = ProtoField.uint64("anabranch.nonce", "Nonce", base.HEX)
f.own_nonce = ProtoField.uint64("anabranch.own_nonce", "Nonce of the sender", base.HEX)
f.largest = ProtoField.uint64("anabranch.largest", "Largest message")
f.labels = ProtoField.uint16("anabranch.labels", "Labels")
f.planes_less_one = ProtoField.uint8("anabranch.planes_less_one", "Planes less one")
f.cookie = ProtoField.bytes("anabranch.cookie", "Cookie (all zero: none)")
f.proof = ProtoField.uint64("anabranch.proof", "Nonce of the handshake", base.HEX)
f.passes = ProtoField.uint16("anabranch.passes", "Bytes that pass")
f.fails = ProtoField.uint16("anabranch.fails", "Bytes that do not pass")
f.part = ProtoField.uint8("anabranch.part", "Datagram of the BYE")
f.parts = ProtoField.uint8("anabranch.parts", "Datagrams of the BYE")
f.fragment = ProtoField.uint8("anabranch.fragment", "Fragment (index, and number less one)", base.HEX)
f.stream = ProtoField.uint32("anabranch.stream", "Stream")
f.payload_size = ProtoField.uint16("anabranch.payload_size", "Payload bytes")
f.index = ProtoField.uint32("anabranch.index", "Place in the message")
f.psn = ProtoField.uint64("anabranch.psn", "PSN")
f.tag = ProtoField.uint32("anabranch.tag", "Path tag", base.HEX)
f.message = ProtoField.uint64("anabranch.message", "Message")
f.checksum = ProtoField.uint32("anabranch.checksum", "CRC32C of the payload", base.HEX)
f.steering = ProtoField.uint64("anabranch.steering", "Where the message is to lie", base.HEX)
f.length = ProtoField.uint64("anabranch.length", "Bytes of the message")
f.transmission = ProtoField.uint32("anabranch.transmission", "Transmission (0: none)")
f.payload = ProtoField.bytes("anabranch.payload", "Payload")
f.cumulative = ProtoField.uint64("anabranch.cumulative", "All received below")
f.bitmap = ProtoField.uint64("anabranch.bitmap", "Bitmap", base.HEX)
f.offset = ProtoField.uint32("anabranch.offset", "Bitmap begins beyond")
f.held = ProtoField.uint32("anabranch.held", "Held (ns)")
local trimmed = ProtoExpert.new("anabranch.trimmed", "Trimmed: the payload is not all there", expert.group.SEQUENCE, expert.severity.NOTE)
p.experts = { trimmed }

-- Field, place and bytes, per kind.
local greeting = {
  { "magic", 8, 4 }, { "sender", 12, 4 }, { "mtu", 16, 2 }, { "planes_less_one", 18, 1 }, { "span", 22, 4 }, { "nonce", 26, 8 },
  { "largest", 34, 8 }, { "labels", 50, 2 }, { "check", 52, 4 },
  { "own_nonce", 56, 8 },
}
local hello = { table.unpack(greeting) }
hello[#hello + 1] = { "cookie", 64, 32 }
local layouts = {
  hello,
  greeting,
  { { "fragment", 3, 1 }, { "check", 8, 4 }, { "stream", 12, 4 }, { "payload_size", 16, 2 }, { "length", 18, 6 }, { "psn", 24, 8 },
    { "message", 32, 8 }, { "index", 40, 4 }, { "tag", 44, 4 }, { "transmission", 52, 4 }, { "steering", 56, 8 } },
  { { "check", 8, 4 }, { "stream", 12, 4 }, { "tag", 16, 4 }, { "psn", 20, 8 }, { "cumulative", 28, 8 }, { "bitmap", 36, 8 },
    { "offset", 44, 4 }, { "held", 48, 4 }, { "transmission", 52, 4 } },
  { { "check", 8, 4 }, { "stream", 12, 4 }, { "tag", 16, 4 }, { "transmission", 20, 4 } },
  { { "check", 8, 4 }, { "stream", 12, 4 }, { "tag", 16, 4 }, { "transmission", 20, 4 }, { "held", 24, 4 } },
  { { "check", 8, 4 }, { "proof", 12, 8 }, { "passes", 20, 2 }, { "fails", 22, 2 }, { "part", 24, 1 }, { "parts", 25, 1 } },
  { { "magic", 8, 4 }, { "nonce", 12, 8 }, { "cookie", 20, 32 }, { "check", 52, 4 } },
}

-- Bytes of a header: of a BYE with 12 for each stream.
local function header(tvb)
  local kind = tvb(1, 1):uint()
  return least[kind] + (kind == 7 and 12 * tvb(3, 1):uint() or 0)
end

-- Bytes that authentication adds to a header: number and MAC, and of data perhaps the payload's MAC.
local function seal(tvb)
  local flags = tvb(2, 1):uint()
  if flags < 128 then return 0 end
  if tvb(1, 1):uint() == 3 and math.floor(flags / 64) % 2 == 1 then return 32 end
  return 20
end

local function is_ours(tvb)
  local size = tvb:reported_len()
  if tvb:len() < 12 or tvb(0, 1):uint() ~= 3 or (tvb(1, 1):uint() ~= 3 and tvb(1, 1):uint() ~= 7 and tvb(3, 1):uint() ~= 0) then return false end
  local kind = tvb(1, 1):uint()
  if not kinds[kind] or size < header(tvb) + seal(tvb) or (exact[kind] and size ~= header(tvb) + seal(tvb)) then return false end
  if kind <= 2 or kind == 8 then return tvb:len() >= 12 and tvb(8, 4):string() == "ABCH" end
  if kind == 3 then return tvb:len() >= 64 + seal(tvb) and size <= 64 + seal(tvb) + tvb(16, 2):uint() end
  return tvb:len() >= header(tvb) + seal(tvb)
end

function p.dissector(tvb, pinfo, tree)
  if not is_ours(tvb) then return 0 end
  local kind = tvb(1, 1):uint()
  pinfo.cols.protocol = "Anabranch"
  local t = tree:add(p, tvb())
  t:add(f.version, tvb(0, 1))
  t:add(f.kind, tvb(1, 1))
  local flags = t:add(f.flags, tvb(2, 1))
  flags:add(f.sealed, tvb(2, 1))
  if kind == 3 then
    flags:add(f.ack_request, tvb(2, 1))
    flags:add(f.checked, tvb(2, 1))
  elseif kind == 4 then
    flags:add(f.ecn, tvb(2, 1))
    flags:add(f.cnp, tvb(2, 1))
    flags:add(f.nack, tvb(2, 1))
  end
  t:add(f.connection, tvb(4, 4))
  for _, field in ipairs(layouts[kind]) do
    t:add(f[field[1]], tvb(field[2], field[3]))
  end
  if kind == 3 and math.floor(tvb(2, 1):uint() / 4) % 2 == 1 then
    t:add(f.checksum, tvb(48, 4))
  end
  local sealed = seal(tvb)
  if sealed > 0 then
    t:add(f.number, tvb(header(tvb), 8))
    if sealed == 32 then t:add(f.payload_mac, tvb(header(tvb) + 8, 12)) end
    t:add(f.mac, tvb(header(tvb) + sealed - 12, 12))
  end
  for stream = 26, kind == 7 and header(tvb) - 12 or 0, 12 do
    t:add(f.stream, tvb(stream, 4))
    t:add(f.cumulative, tvb(stream + 4, 8))
  end
  local info = kinds[kind]
  if kind == 3 then
    local size, there = tvb(16, 2):uint(), tvb:reported_len() - 64 - sealed
    info = string.format("data stream=%d psn=%s tag=0x%x message=%s[%d] %d B", tvb(12, 4):uint(), tostring(tvb(24, 8):uint64()),
      tvb(44, 4):uint(), tostring(tvb(32, 8):uint64()), tvb(40, 4):uint(), size)
    if there < size then
      t:add_proto_expert_info(trimmed)
      info = info .. " trimmed"
    elseif tvb:len() > 64 + sealed then
      t:add(f.payload, tvb(64 + sealed))
    end
  elseif kind == 4 then
    local flags = tvb(2, 1):uint()
    info = string.format("answer stream=%d psn=%s cumulative=%s%s%s%s", tvb(12, 4):uint(), tostring(tvb(20, 8):uint64()),
      tostring(tvb(28, 8):uint64()), flags % 2 == 1 and " marked" or "", math.floor(flags / 2) % 2 == 1 and " cnp" or "",
      math.floor(flags / 4) % 2 == 1 and " nack" or "")
  elseif kind == 5 or kind == 6 then
    info = string.format("%s stream=%d tag=0x%x", kinds[kind], tvb(12, 4):uint(), tvb(16, 4):uint())
  end
  pinfo.cols.info = info
  return tvb:len()
end

p:register_heuristic("udp", function(tvb, pinfo, tree)
  return p.dissector(tvb, pinfo, tree) > 0
end)
