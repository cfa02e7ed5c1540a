use holdfast_documents::{Area, DocumentError, excerpt, page_image};

use crate::support::{PageRaster, contract, page};

#[test]
fn a_page_image_has_exactly_the_requested_width() {
    for width in [1, 2, 320, 777, 1000, 2400] {
        let image = page_image(&contract(), 1, width).unwrap();
        assert_eq!(image.width, width);

        let expected = (f64::from(width) * 792.0 / 612.0).round().max(1.0) as u32;
        assert!(
            image.height.abs_diff(expected) <= 1,
            "{} for {expected}",
            image.height
        );
    }
}

#[test]
fn an_image_request_beyond_the_limits_gives_a_smaller_image() {
    assert_eq!(page_image(&contract(), 1, 100_000).unwrap().width, 2_400);
    let roll = page("/MediaBox[0 0 10 14400]", "");
    let image = page_image(&roll, 1, 2_400).unwrap();
    assert!(
        image.height <= 16_000 && image.width < 100,
        "{} x {}",
        image.width,
        image.height
    );

    let strip = page("/MediaBox[0 0 14400 10]", "");
    let image = page_image(&strip, 1, 1_000).unwrap();
    assert_eq!((image.width, image.height), (1_000, 1));
}

#[test]
fn page_images_match_another_viewer() {
    for number in 1..=4 {
        let own = PageRaster::own(&contract(), number, 1_275).unwrap();
        let theirs = PageRaster::poppler_at(&contract(), number, 150);
        assert_eq!((own.width, own.height), (theirs.width, theirs.height));

        let distance = own.distance(&theirs);
        let blank = PageRaster {
            rgb: vec![255; own.rgb.len()],
            ..own
        };
        let ink = blank.distance(&theirs);
        assert!(
            distance * 5.0 < ink,
            "page {number} differs by {distance:.2} where all ink is {ink:.2}"
        );
    }
}

#[test]
fn an_image_of_a_missing_page_is_refused() {
    for number in [0, 5, u32::MAX] {
        assert!(matches!(
            page_image(&contract(), number, 100),
            Err(DocumentError::Other(_))
        ));
    }

    assert!(matches!(
        page_image(&contract(), 1, 0),
        Err(DocumentError::Other(_))
    ));
}

#[test]
fn an_excerpt_shows_the_surroundings_of_a_place_with_a_frame() {
    let place = |x: f64, y: f64| Area {
        page: 1,
        x,
        y,
        w: 0.1,
        h: 0.02,
    };
    let whole = page_image(&contract(), 1, 1_000).unwrap();
    let whole = image::load_from_memory(&whole.png).unwrap().to_rgb8();
    let found = excerpt(&contract(), &place(0.5, 0.5), 1_000).unwrap();
    let shown = image::load_from_memory(&found.png).unwrap().to_rgb8();
    assert_eq!((found.width, found.height), shown.dimensions());
    assert_eq!(found.width, 600);
    assert!(found.height < whole.height() / 5, "{}", found.height);

    // The frame is around the place, and the place itself is as on the page.
    let top = whole.height() / 2 - (f64::from(whole.height()) * 0.44) as u32;
    let frame = image::Rgb([0xc6, 0x28, 0x28]);
    assert_eq!(*shown.get_pixel(300, top - 2), frame);
    assert_eq!(*shown.get_pixel(248, top + 2), frame);
    for (x, y) in [(250, top), (300, top + 3), (349, top + 5)] {
        let on_page = whole.get_pixel(x + 250, y + whole.height() / 2 - top);
        assert_eq!(shown.get_pixel(x, y), on_page, "{x} {y}");
    }

    // At the edges of the page there is less around the place.
    let corner = excerpt(&contract(), &place(0.0, 0.98), 1_000).unwrap();
    assert_eq!(corner.width, 350);
    assert!(excerpt(&contract(), &place(0.95, 0.5), 1).is_ok());
    for wrong in [place(-0.5, 0.5), place(f64::NAN, 0.5), place(1.5, 0.5)] {
        let refused = excerpt(&contract(), &wrong, 1_000);
        assert!(
            matches!(refused, Err(DocumentError::Other(_))),
            "{refused:?}"
        );
    }
}

#[test]
fn equal_input_gives_equal_bytes() {
    assert_eq!(
        page_image(&contract(), 2, 500),
        page_image(&contract(), 2, 500)
    );
}
