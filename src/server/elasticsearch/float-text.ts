/** The shortest decimal text that reads back as the same float32, as Java's Float.toString writes it: `7.651336`, `1.0`, `1.0E-5`. */
export function floatText(value: number): string {
  if (value === 0) return '0.0';
  // Nine significant digits tell any two float32 values apart.
  let shortest = value.toExponential(8);
  for (let digits = 0; digits < 8; digits++) {
    const text = value.toExponential(digits);
    if (Math.fround(Number(text)) !== value) continue;
    shortest = halfToEven(value, text, digits);
    break;
  }
  const size = Math.abs(value);
  const plain = Number(shortest);
  if (size >= 1e-3 && size < 1e7) return Number.isInteger(plain) ? `${plain}.0` : String(plain);
  const [mantissa = '', exponent = ''] = shortest.split('e');
  return `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}E${Number(exponent)}`;
}

/** The text with an even last digit, where the value is exactly between two texts of this length: JavaScript takes the larger. */
function halfToEven(value: number, text: string, digits: number): string {
  const exact = value.toExponential(100);
  // The sign and the first digit, the point, and the other digits.
  const kept = exact.slice(0, exact.indexOf('.') + 1 + digits);
  const rest = exact.slice(kept.length, exact.indexOf('e'));
  const isTie = /^50*$/.test(rest) && /[02468]\.?$/.test(kept);
  const even = `${kept.replace(/\.$/, '')}${exact.slice(exact.indexOf('e'))}`;
  return isTie && Math.fround(Number(even)) === value ? even : text;
}
