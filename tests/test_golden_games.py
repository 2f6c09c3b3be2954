"""Golden games: transcripts of a deal drawn as a pyramid, moves as players write them, and the table in between."""

from __future__ import annotations

from textwrap import dedent

import pytest

import pyramid_env as pe

PYRAMID = """
                  Jd
                2s  9h
              4d  Tc  Jc
            8s  3d  9s  9d
          2c  Ah  Td  Ts  3c
        5h  Js  Jh  Qc  8c  Ks
      Th  4c  As  7c  8d  6h  Qd

      6c 3s Qs 2h 5d 5s 4s 3h 5c Ad Kd 7d
      4h Ac Qh 2d 8h 6d 7s 6s 9c Kc Kh 7h
"""
PYRAMID_PLAY = """
    pyramid

                 Jd
               2s  9h
             4d  Tc  Jc
           8s  3d  9s  9d
         2c  Ah  Td  Ts  3c
       5h  Js  Jh  Qc  8c  Ks
    [Th][4c][As][7c][8d][6h][Qd]

    stock 24   waste -
    pass 1 of 3   par -52   52 cards left   0 moves
> 7c+6h As+Qd Ks draw draw
    pyramid

                 Jd
               2s  9h
             4d  Tc  Jc
           8s  3d  9s  9d
         2c  Ah  Td  Ts  3c
       5h  Js [Jh] Qc  8c   .
    [Th][4c]  .   . [8d]  .   .

    stock 22   waste [3s] of 2
    pass 1 of 3   par -47   47 cards left   5 moves
> Th+3s
    pyramid

                 Jd
               2s  9h
             4d  Tc  Jc
           8s  3d  9s  9d
         2c  Ah  Td  Ts  3c
       5h  Js [Jh] Qc  8c   .
      . [4c]  .   . [8d]  .   .

    stock 22   waste [6c]
    pass 1 of 3   par -45   45 cards left   6 moves
> draw draw draw draw draw draw draw 8d+5c draw draw Kd draw draw draw Qc+Ac draw draw draw
> draw draw draw draw 4c+9c 5h+8c draw Kc draw Kh draw
    pyramid

                 Jd
               2s  9h
             4d  Tc  Jc
           8s  3d  9s  9d
         2c  Ah  Td [Ts][3c]
        . [Js][Jh]  .   .   .
      .   .   .   .   .   .   .

    stock 0 (recycle)   waste [7h] of 17
    pass 1 of 3   par -34   34 cards left   35 moves
> recycle
    pyramid

                 Jd
               2s  9h
             4d  Tc  Jc
           8s  3d  9s  9d
         2c  Ah  Td [Ts][3c]
        . [Js][Jh]  .   .   .
      .   .   .   .   .   .   .

    stock 17   waste -
    pass 2 of 3   par -34   34 cards left   36 moves
> draw draw draw Js+2h 2c+Jh Td+3c Ah+Qs 3d+Ts draw 8s+5d 4d+9d draw draw 9s+4s draw Tc+3h
> 2s+Jc draw draw draw 9h+4h draw draw Jd+2d
    pyramid

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock 5   waste [Qh] of 5
    pass 2 of 3   par 25   10 cards left   60 moves   won
"""
"""A card that leaves the waste bares the one under it; the recycled stock comes in the old order; the clear in pass 2
earns 35 less the ten cards left."""

TILL_DAWN = """
                  9s
                7h  3s
              3d  7d  7s
            Ks  9c  Th  Ac
          6c  Js  Kd  As  Ah
        5s  8d  4s  8s  Ad  9h
      8h  4d  3h  Qh  2c  Tc  Jh

      6d 8c Jd 5c 2h 7c 2s Kc 6h 5d Td 4h
      Jc 6s Qc 5h 2d Qs 9d Qd 3c Kh 4c Ts
"""
TILL_DAWN_PLAY = """
> 3h+Tc 2c+Jh 9h+4d Ad+Qh draw draw draw 8d+5c draw
    till_dawn

                 9s
               7h  3s
             3d  7d  7s
           Ks  9c  Th  Ac
         6c  Js  Kd  As [Ah]
       5s   . [4s][8s]  .   .
    [8h]  .   .   .   .   .   .

    stock [7c] of 19   waste Jd [2h] of 4
    pass 1 of 3   par -42   42 cards left   9 moves
> 2h+Jd
    till_dawn

                 9s
               7h  3s
             3d  7d  7s
           Ks  9c  Th  Ac
         6c  Js  Kd  As [Ah]
       5s   . [4s][8s]  .   .
    [8h]  .   .   .   .   .   .

    stock [7c] of 19   waste 6d [8c]
    pass 1 of 3   par -40   40 cards left   10 moves
> draw draw Kc draw 8h+5d 5s+8s draw draw draw draw As+Qc draw draw Ah+Qs 4s+9d Js+2d Ac+Qd
> Kd Th+3c 7s+6c Ks Kh 9c+4c 3d+Ts recycle 7d+6d draw draw draw 7h+6h 3s+Td
    till_dawn

                [9s]
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock [4h] of 4   waste 7c [2s] of 3
    pass 2 of 3   par -8   8 cards left   41 moves
> 9s+4h
    till_dawn

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock [Jc] of 3   waste 7c [2s] of 3
    pass 2 of 3   par 29   6 cards left   42 moves   cleared in pass 2
> draw
    till_dawn

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock [6s] of 2   waste 2s [Jc] of 4
    pass 2 of 3   par 29   6 cards left   43 moves   cleared in pass 2
> Jc+2s
    till_dawn

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock [6s] of 2   waste 8c [7c]
    pass 2 of 3   par 31   4 cards left   44 moves   cleared in pass 2
> draw 6s+7c 5h+8c
    till_dawn

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock 0   waste -
    pass 2 of 3   par 35   0 cards left   47 moves   won
"""
"""The top of the stock is open, pairs with the top of the waste, and the two uppermost of the waste pair (``2h+Jd``);
play goes on after the clear, and every card that leaves counts."""

MICROSOFT = """
                  Ad
                2d  4d
              Ah  Ts  Jc
            7s  2s  4h  6c
          Ks  5d  3h  3s  Td
        Jh  5c  Js  6d  9s  6h
      8h  Kc  Qc  3c  2h  5s  2c

      7d 8c 9c As 8s 7c Kd Tc 4s 6s 4c 8d
      Qs Qd Jd Kh Qh 9d Ac 7h 3d Th 5h 9h
"""
MICROSOFT_PLAY = """
> Kc
    microsoft

                 Ad
               2d  4d
             Ah  Ts  Jc
           7s  2s  4h  6c
         Ks  5d  3h  3s  Td
       Jh  5c  Js  6d  9s  6h
    [8h]  . [Qc][3c][2h][5s][2c]

    stock [7d] of 24   waste -
    pass 1 of 3   points 5   51 cards left   1 move
> draw 5s+8c draw Qc+As 5c+8s draw Kd 3c+Tc Js+2h 9s+4s 6s+7c 4c+9c 6d+7d 5d+8d draw draw
> 2c+Jd Kh
    microsoft

                 Ad
               2d  4d
             Ah  Ts  Jc
           7s  2s  4h  6c
         Ks   . [3h][3s] Td
       Jh   .   .   .   . [6h]
    [8h]  .   .   .   .   .   .

    stock [Qh] of 8   waste [Qd] of 2
    pass 1 of 3   points 70   27 cards left   19 moves
> draw draw draw 6h+7h 3s+Td draw 3h+Th 8h+5h 2s+Jh Ks 4h+9h 7s+6c Ts+3d
    microsoft

                 Ad
               2d  4d
            [Ah]  . [Jc]
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock 0 (recycle)   waste [Ac] of 5
    pass 1 of 3   points 365   10 cards left   32 moves
> recycle draw Ah+Qd 2d+Jc draw 4d+9d
    microsoft

                [Ad]
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock [Ac] of 1   waste [Qh] of 2
    pass 2 of 3   points 780   4 cards left   38 moves
> Ad+Qh
    microsoft

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock [Ac] of 1   waste [Qs]
    pass 2 of 3   points 1285   2 cards left   39 moves   won
"""
"""Five points a removal, and each row once, from the bottom up: 25, 50, 75, 100, 150, 250, 500."""

THREE_PILES = """
                  6s
                Kh  8s
              Kc  8c  5d
            Ks  2s  3c  Qh
          7h  Js  Ah  Ts  6h
        Td  Qc  As  6d  5c  7s
      6c  5s  Th  3h  7d  9c  Kd

      8d 8h 9d 2h 9h 3s Ac Jh 4s Qs 2d 4h
      5h Jc 7c 9s 3d Qd 2c Tc 4d 4c Ad Jd
"""
THREE_PILES_PLAY = """
> Kd Th+3h 6c+7d draw
    solitaire13_three_piles

                 6s
               Kh  8s
             Kc  8c  5d
           Ks  2s  3c  Qh
         7h  Js  Ah  Ts  6h
       Td  Qc [As][6d] 5c  7s
      . [5s]  .   .   . [9c]  .

    stock 21
    waste1 [8d]   waste2 [8h]   waste3 [9d]
    pass 1 of 1   par -47   47 cards left   4 moves
> 5s+8d Qc+As draw draw 9c+4s 6d+7s
    solitaire13_three_piles

                 6s
               Kh  8s
             Kc  8c  5d
           Ks  2s  3c  Qh
         7h [Js][Ah] Ts  6h
      [Td]  .   .   . [5c]  .
      .   .   .   .   .   .   .

    stock 15
    waste1 [Ac] of 2   waste2 [Jh] of 3   waste3 [3s] of 2
    pass 1 of 1   par -39   39 cards left   10 moves
> draw Js+2d Ah+Qs 2s+Jh 9h+4h 5c+8h Ts+3s 3c+Td 7h+6h Ks Kc Qh+Ac 8c+5d Kh draw
    solitaire13_three_piles

                 6s
                . [8s]
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock 9
    waste1 [5h] of 2   waste2 [Jc]   waste3 [7c] of 2
    pass 1 of 1   par -16   16 cards left   25 moves
> 8s+5h 6s+7c
    solitaire13_three_piles

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock 9
    waste1 [2h]   waste2 [Jc]   waste3 [9d]
    pass 1 of 1   par 38   12 cards left   27 moves   won
"""
"""A draw turns three cards, one onto each pile, and the tops of two piles may pair."""

OVERLAP = """
                  Th
                Td  6s
              5c  7c  Ad
            2h  9c  Tc  Qs
          4s  8h  Js  Ts  6h
        3s  Kd  2d  3d  Qh  Jh
      Qd  Jc  Kh  2s  2c  Ac  Jd

      9s 9d 8c Kc 5h Ah 4h 4c As 8d 6c 4d
      8s 7h 3h Qc Ks 5s 6d 5d 7d 3c 7s 9h
"""
OVERLAP_PLAY = """
> Kh Jc+2c
    overlap

                 Th
               Td  6s
             5c  7c  Ad
           2h  9c  Tc  Qs
         4s  8h  Js  Ts  6h
       3s [Kd] 2d  3d  Qh  Jh
    [Qd]  .   . [2s]  . [Ac][Jd]

    stock 24   waste -
    pass 1   par -49   49 cards left   2 moves
> Kd Qh+Ac 2s+Jd Ts+3d
    overlap

                 Th
               Td  6s
             5c  7c  Ad
           2h  9c  Tc  Qs
         4s  8h  Js   .  6h
       3s   . [2d]  .   . [Jh]
    [Qd]  .   .   .   .   .   .

    stock 24   waste -
    pass 1   par -42   42 cards left   6 moves
> Js+2d
    overlap

                 Th
               Td  6s
             5c  7c  Ad
           2h  9c [Tc] Qs
         4s [8h]  .   .  6h
       3s   .   .   .   . [Jh]
    [Qd]  .   .   .   .   .   .

    stock 24   waste -
    pass 1   par -40   40 cards left   7 moves
> draw draw draw draw Kc draw 8h+5h draw Qd+Ah Tc+3s 9c+4s 2h+Jh 7c+6h Ad+Qs 5c+8c draw draw
> draw draw draw draw draw draw 6s+7h draw Td+3h draw draw Ks draw draw draw draw draw Th+3c
    overlap

                  .
                .   .
              .   .   .
            .   .   .   .
          .   .   .   .   .
        .   .   .   .   .   .
      .   .   .   .   .   .   .

    stock 2   waste [7d] of 14
    pass 1   par 34   16 cards left   42 moves   won
"""
"""``Qh+Ac``, ``Ts+3d``, ``Js+2d``: a card leaves with the only card that still covers it."""

MINI = """
          4c
        3d  Ad
      6c  3c  5d

      2c 2d Ac 7c 4d 6d 7d 5c
"""
MINI_PLAY = """
> draw
    mini

         4c
       3d  Ad
    [6c][3c][5d]

    stock 7   waste [2c]
    pass 1 of 3   par -14   14 cards left   1 move
> 5d+2c draw draw 6c+Ac draw 7c
    mini

         4c
       3d  Ad
      . [3c]  .

    stock 4   waste [2d]
    pass 1 of 3   par -9   9 cards left   7 moves
> draw 3c+4d
    mini

         4c
      [3d][Ad]
      .   .   .

    stock 3   waste [2d]
    pass 1 of 3   par -7   7 cards left   9 moves
> undo
    mini

         4c
       3d  Ad
      . [3c]  .

    stock 3   waste [4d] of 2
    pass 1 of 3   par -9   9 cards left   8 moves
> redo draw Ad+6d draw 7d draw recycle draw
    mini

         4c
      [3d]  .
      .   .   .

    stock 1   waste [2d]
    pass 2 of 3   par -4   4 cards left   16 moves
> draw undo redo
    mini

         4c
      [3d]  .
      .   .   .

    stock 0 (recycle)   waste [5c] of 2
    pass 2 of 3   par -4   4 cards left   17 moves
> recycle draw
    mini

         4c
      [3d]  .
      .   .   .

    stock 1   waste [2d]
    pass 3 of 3   par -4   4 cards left   19 moves
> draw
    mini

         4c
      [3d]  .
      .   .   .

    stock 0   waste [5c] of 2
    pass 3 of 3   par -4   4 cards left   20 moves   over
"""
"""Two suits, ace to seven: pairs make seven, a seven leaves alone. The passes run out, the apex stays: not won."""

GAMES = {
    "pyramid": (PYRAMID, PYRAMID_PLAY),
    "till_dawn": (TILL_DAWN, TILL_DAWN_PLAY),
    "microsoft": (MICROSOFT, MICROSOFT_PLAY),
    "solitaire13_three_piles": (THREE_PILES, THREE_PILES_PLAY),
    "overlap": (OVERLAP, OVERLAP_PLAY),
    "mini": (MINI, MINI_PLAY),
}


def blocks(play: str) -> list[tuple[list[str], str]]:
    """A transcript as (words, picture) pairs: lines with ``>`` hold moves, those below show the table."""
    read: list[tuple[list[str], list[str]]] = [([], [])]
    for line in play.strip("\n").split("\n"):
        if line.startswith("> "):
            if read[-1][1]:
                read.append(([], []))
            read[-1][0].extend(line[2:].split())
        else:
            read[-1][1].append(line)
    return [(words, dedent("\n".join(picture))) for words, picture in read]


@pytest.mark.parametrize("preset", GAMES)
def test_a_golden_game_goes_as_written(preset: str) -> None:
    deal, play = GAMES[preset]
    game = pe.Game(deal, preset)
    for words, picture in blocks(play):
        for word in words:
            match word:
                case "undo":
                    game.undo()
                case "redo":
                    game.redo()
                case _:
                    game.play(word)
        assert str(game) == picture
    assert game.is_over
    assert game.is_won == (preset != "mini")
    assert not game.legal_moves
