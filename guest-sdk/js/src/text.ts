/** Text as the contract counts it: in characters, which are Unicode scalar values. */

/** The text without so many characters at its end. */
export function withoutLast(text: string, count: number): string {
  let end = text.length;
  for (let k = 0; k < count && end > 0; k += 1) {
    const isPair = end > 1 && (text.charCodeAt(end - 1) & 0xfc00) === 0xdc00;
    end -= isPair ? 2 : 1;
  }
  return text.slice(0, end);
}
