// Arrays as the server sends them: safetensors, a header of JSON and the numbers behind it.

const KINDS = {
  F64: Float64Array,
  F32: Float32Array,
  I32: Int32Array,
  U32: Uint32Array,
  I16: Int16Array,
  U16: Uint16Array,
  I8: Int8Array,
  U8: Uint8Array,
  BOOL: Uint8Array,
};

export function read(buffer) {
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  const arrays = {};
  for (const [
    name,
    {
      dtype,
      shape,
      data_offsets: [begin, end],
    },
  ] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const Kind = KINDS[dtype];
    arrays[name] = new Kind(buffer, 8 + length + begin, (end - begin) / Kind.BYTES_PER_ELEMENT);
    arrays[name].shape = shape;
  }
  return arrays;
}
